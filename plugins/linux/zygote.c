/* SPDX-License-Identifier: Apache-2.0 */
/* The process of an interpreter that stands ready to be forked into sandboxes.
 *
 * Whoever is to enter a sandbox must be of the user namespace that it was made
 * in, and its maker's user: so that process is not in a sandbox itself, and in
 * no Landlock domain, which could never be left again.  It is trusted as this
 * one is: it runs the machine's own interpreter and modules and the host's
 * program, from an environment of its own, with no file of anybody's, and never
 * a byte of what a sandbox is given.  Besides, it has no capability, can gain
 * none, and as root a network without anything and a root folder with nothing
 * but the machine's programs, to read.  (An ordinary user cannot have these
 * without a user namespace of its own.)
 *
 * It ends with its connection, or when nobody asks it for anything. */

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clone.h"
#include "kernel.h"
#include "linux.h"

#define SECUREBITS 0xef         /* all of them, locked */
#define ATTR_RDONLY_ 1
#define ATTR_NOSUID_ 2
#define ATTR_NODEV_ 4
#define SHOWN_MAX 512
#define TEXT_MAX 2048
/* Names of descriptors in the program below. */
#define EXTENSION 3
#define PROGRAM 4
#define SOCKET 5
/* What a copy calls first is looked up here, and not in each of them. */
#define BIND_NOW "LD_BIND_NOW"

/* The extension, the host's program, its modules; then one copy after another
 * goes on behind `serve`. */
static const char boot[]
  = "import sys, posix, _imp\n"
    "class Spec: name = 'coffer_warm'; origin = '/proc/self/fd/3'\n"
    "try:\n"
    "    warm = _imp.create_dynamic(Spec)\n"
    "    _imp.exec_dynamic(warm)\n"
    "    posix.close(3)\n"
    "    program = type(sys)('__warm__')\n"
    "    sys.modules['__warm__'] = program\n"
    "    source = posix.pread(4, posix.fstat(4).st_size, 0)\n"
    "    posix.close(4)\n"
    "    exec(compile(source, '<runner>', 'exec', dont_inherit=True),\n"
    "         program.__dict__)\n"
    "    modules = sys.argv[1:]\n"
    "    del sys.argv[1:]\n"
    "    import os\n"
    "    os.environ.pop('" BIND_NOW "', None)\n"
    "    before = dict(os.environb)\n"
    "    missing = program.prepare(modules)\n"
    "    if missing:\n"
    "        posix.write(5, b'M' + ', '.join(missing).encode()[:1024])\n"
    "    own = {name for name, value in os.environb.items()\n"
    "           if before.get(name) != value}\n"
    "    waits = warm.serve(5)\n"
    "except BaseException as error:\n"
    "    try: posix.write(5, b'E' + repr(error).encode()[:1024])\n"
    "    finally: posix._exit(1)\n"
    "if waits is None:\n"
    "    posix._exit(0)\n"
    "if waits and hasattr(program, 'ahead'):\n"
    "    program.ahead()\n"
    "environment = dict(e.split(b'=', 1) for e in warm.become())\n"
    "for name in set(os.environb) - own - environment.keys():\n"
    "    del os.environb[name]\n"
    "for name, value in environment.items():\n"
    "    if os.environb.get(name) != value:\n"
    "        os.environb[name] = value\n"
    "del warm, Spec, source, modules, missing, environment, waits, before, own\n"
    "program.run()\n"
    "posix._exit(0)\n";

const char *
zygote_python (void)
{
  static const char *const places[]
    = { "/usr/local/sbin/python3", "/usr/local/bin/python3",
        "/usr/sbin/python3", "/usr/bin/python3", "/sbin/python3",
        "/bin/python3" };
  size_t i;

  for (i = 0; WARM_BUILT && i < sizeof places / sizeof places[0]; i++)
    if (access (places[i], X_OK) == 0)
      return places[i];
  return NULL;
}

/* ---- its birth ---------------------------------------------------------- */

struct birth {
  const char *python;
  const char *const *argv;
  const char *const *shown;     /* of the machine, as root */
  int files[3];                 /* EXTENSION, PROGRAM, SOCKET */
  int privileged;
  int precedence;
  volatile int error;
  const char *volatile step;
};

static int
failed (struct birth *birth, const char *step)
{
  birth->error = errno;
  birth->step = step;
  return 127;
}

/* What follows runs in this process's memory while the calling thread waits:
 * system calls only. */

static int
parents_make (int root, const char *path)
{
  char part[256];
  size_t i;

  for (i = 1; path[i] != '\0' && i < sizeof part; i++) {
    part[i - 1] = path[i] == '/' ? '\0' : path[i];
    if (path[i] == '/') {
      if (syscall (SYS_mkdirat, root, part, 0755) == -1 && errno != EEXIST)
        return -1;
      part[i - 1] = '/';
    }
  }
  return 0;
}

static int
place_make (int root, const char *name, int tree)
{
  struct stat st;

  if (fstatat (tree, "", &st, AT_EMPTY_PATH) == -1)
    return -1;
  return (int) (S_ISDIR (st.st_mode)
                  ? syscall (SYS_mkdirat, root, name, 0755)
                  : syscall (SYS_mknodat, root, name, S_IFREG | 0444, 0));
}

/* What this machine does not have is left out. */
static int
one_show (int root, const char *path)
{
  struct {
    uint64_t set, clear, propagation, userns;
  } attributes = { .set = ATTR_RDONLY_ | ATTR_NOSUID_
                          | (strncmp (path, "/dev/", 5) == 0 ? 0
                                                             : ATTR_NODEV_),
                   .propagation = MS_PRIVATE };
  char target[256];
  long n = syscall (SYS_readlinkat, AT_FDCWD, path, target,
                    sizeof target - 1), r;
  int tree;

  if (parents_make (root, path) == -1)
    return -1;
  if (n > 0 && strncmp (path, "/etc/", 5) != 0) {
    target[n] = '\0';
    return (int) syscall (SYS_symlinkat, target, root, path + 1);
  }
  tree = (int) syscall (SYS_open_tree, AT_FDCWD, path,
                        OPEN_TREE_CLONE_ | AT_RECURSIVE_ | O_CLOEXEC);
  if (tree < 0)
    return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
  r = place_make (root, path + 1, tree);
  if (r == 0)
    r = syscall (SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE_,
                 &attributes, sizeof attributes);
  if (r == 0)
    r = syscall (SYS_move_mount, tree, "", root, path + 1, MOVE_EMPTY_);
  syscall (SYS_close, tree);
  return (int) r;
}

static int
root_new (void)
{
  int fs = (int) syscall (SYS_fsopen, "tmpfs", 1), root;

  if (fs < 0 || syscall (SYS_fsconfig, fs, 1, "size", "1M", 0) == -1
      || syscall (SYS_fsconfig, fs, 1, "mode", "0755", 0) == -1
      || syscall (SYS_fsconfig, fs, 6, NULL, NULL, 0) == -1)
    return -1;
  root = (int) syscall (SYS_fsmount, fs, 1, ATTR_NOSUID_ | ATTR_NODEV_);
  syscall (SYS_close, fs);
  return root;
}

static int
root_enter (const char *const *shown)
{
  struct {
    uint64_t set, clear, propagation, userns;
  } attributes = { .set = ATTR_RDONLY_ };
  int root;

  if (syscall (SYS_unshare,
               CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) == -1
      || syscall (SYS_mount, NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1)
    return -1;
  root = root_new ();
  if (root < 0
      || syscall (SYS_move_mount, root, "", AT_FDCWD, "/", MOVE_EMPTY_) == -1)
    return -1;
  for (; *shown != NULL; shown++)
    if (one_show (root, *shown) == -1)
      return -1;
  return syscall (SYS_fchdir, root) == -1
             || syscall (SYS_pivot_root, ".", ".") == -1
             || syscall (SYS_umount2, ".", MNT_DETACH) == -1
             || syscall (SYS_chdir, "/") == -1
             || syscall (SYS_mount_setattr, AT_FDCWD, "/", 0, &attributes,
                         sizeof attributes) == -1
             || syscall (SYS_close, root) == -1
    ? -1 : 0;
}

static int
rights_drop (const struct birth *birth)
{
  struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
  struct __user_cap_data_struct none[2] = { { 0 } };
  int i;

  if (birth->privileged
      && (syscall (SYS_setgroups, 0, NULL) == -1
          || syscall (SYS_prctl, PR_SET_SECUREBITS, SECUREBITS, 0, 0, 0) == -1))
    return -1;
  for (i = 0; birth->privileged && i < 64; i++)
    if (syscall (SYS_prctl, PR_CAPBSET_DROP, i, 0, 0, 0) == -1) {
      if (errno == EINVAL)
        break;
      return -1;
    }
  return syscall (SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0,
                  0) == -1
             || syscall (SYS_capset, &header, none) == -1
             || syscall (SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1
    ? -1 : 0;
}

static int
files_settle (const struct birth *birth)
{
  int from[3], null, i;

  null = (int) syscall (SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0)
    return -1;
  for (i = 0; i < 3; i++) {
    from[i] = (int) syscall (SYS_fcntl, birth->files[i], F_DUPFD_CLOEXEC, 16);
    if (from[i] < 0)
      return -1;
  }
  null = (int) syscall (SYS_fcntl, null, F_DUPFD_CLOEXEC, 16);
  for (i = 0; i < 3; i++)
    if (syscall (SYS_dup3, null, i, 0) == -1
        || syscall (SYS_dup3, from[i], 3 + i, 0) == -1)
      return -1;
  return (int) syscall (SYS_close_range, 6, ~0u, CLOSE_RANGE_CLOEXEC);
}

/* Soft limits of this process are its own affair. */
static void
limits_lift (void)
{
  static const int lifted[] = { RLIMIT_DATA, RLIMIT_AS, RLIMIT_CPU };
  struct rlimit limit;
  size_t i;

  for (i = 0; i < sizeof lifted / sizeof lifted[0]; i++)
    if (syscall (SYS_prlimit64, 0, lifted[i], NULL, &limit) == 0) {
      limit.rlim_cur = limit.rlim_max;
      syscall (SYS_prlimit64, 0, lifted[i], &limit, NULL);
    }
}

static int
child_main (void *data)
{
  static const char *const envp[]
    = { "PATH=" PROGRAM_PATH, "HOME=/workspace", "USER=user",
        "LANG=C.UTF-8", "TMPDIR=/tmp", BIND_NOW "=1", NULL };
  static const uint64_t none = 0, usual[4] = { 0 };
  struct birth *birth = data;
  int i;

  if (precedence_drop (birth->precedence) == -1)
    return failed (birth, "precedence");
  for (i = 1; i <= 64; i++)
    syscall (SYS_rt_sigaction, i, usual, NULL, 8);
  if (birth->privileged && root_enter (birth->shown) == -1)
    return failed (birth, "a root of its own");
  if (files_settle (birth) == -1)
    return failed (birth, "descriptors");
  if (rights_drop (birth) == -1)
    return failed (birth, "giving up rights");
  syscall (SYS_umask, 022);
  if (syscall (SYS_setsid) == -1 || syscall (SYS_chdir, "/") == -1)
    return failed (birth, "a session");
  limits_lift ();
  syscall (SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, 8);
  syscall (SYS_execve, birth->python, birth->argv, envp);
  return failed (birth, birth->python);
}

/* ---- from outside ------------------------------------------------------- */

/* As the sandboxes have it, as far as an interpreter looks. */
static int
shown_list (struct linux_provider *self, struct coffer_strings *out)
{
  static const char *const fixed[]
    = { "/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32",
        "/proc", "/dev/null", "/dev/urandom" };
  coffer_autobuffer struct coffer_buffer names = { 0 };
  size_t i;

  if (etc_names_copy (self, &names) == -1)
    return -1;
  for (i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
    coffer_strings_add (out, fixed[i]);
  for (i = 0; i < names.size; i += strlen (names.data + i) + 1)
    coffer_strings_printf (out, "/etc/%s", names.data + i);
  if (!out->failed)
    return 0;
  errno = ENOMEM;
  return -1;
}

static int32_t
birth_give (struct coffer_call *call, struct birth *birth,
            struct zygote *zygote)
{
  birth->precedence = precedence_found ();
  if (birth->precedence == -1)
    return coffer_fail_errno (call, errno, "precedence");
  zygote->pid = clone_waited (child_main, birth, CLONE_PIDFD | SIGCHLD,
                              &zygote->pidfd);
  if (zygote->pid < 0) {
    zygote->pid = 0;
    return coffer_fail_errno (call, errno, "starting an interpreter");
  }
  if (birth->error == 0)
    return COFFER_OK;
  return fail_with (call, COFFER_UNAVAILABLE,
                    "warm: no interpreter could be started: %s: %s",
                    birth->step, strerror (birth->error));
}

int32_t
zygote_start (struct linux_provider *self, struct coffer_call *call,
              const struct warm *warm, struct zygote *zygote)
{
  coffer_autostrings struct coffer_strings shown = { 0 }, argv = { 0 };
  coffer_autoclose int extension = -1, theirs = -1;
  struct birth birth = { .python = zygote_python (),
                         .privileged = geteuid () == 0 };
  size_t i;
  int pair[2];
  int32_t code;

  *zygote = (struct zygote) ZYGOTE_NONE;
  if (birth.python == NULL)
    return coffer_fail (call, COFFER_UNAVAILABLE,
                        "warm: there is no python3 in " PROGRAM_PATH);
  extension = coffer_file (call, "coffer-warm.so");
  if (extension < 0)
    return coffer_fail (call, COFFER_UNAVAILABLE,
                        "warm: coffer-warm.so is not there, or not the "
                        "manifest's");
  if (birth.privileged && shown_list (self, &shown) == -1)
    return coffer_fail_errno (call, errno, "the names in /etc");
  coffer_strings_add (&argv, "python3");
  coffer_strings_add (&argv, "-I");
  coffer_strings_add (&argv, "-S");
  coffer_strings_add (&argv, "-c");
  coffer_strings_add (&argv, boot);
  for (i = 0; i < warm->modules.count; i++)
    coffer_strings_add (&argv, warm->modules.items[i]);
  if (argv.failed)
    return coffer_fail_errno (call, ENOMEM, "the interpreter's arguments");
  if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == -1)
    return coffer_fail_errno (call, errno, "socketpair");
  zygote->control = pair[0];
  theirs = pair[1];
  zygote->maker = getpid ();
  zygote->born_ns = coffer_now_ns ();
  birth.argv = coffer_strings_view (&argv);
  birth.shown = coffer_strings_view (&shown);
  birth.files[0] = extension;
  birth.files[1] = warm->program_fd;
  birth.files[2] = theirs;
  code = birth_give (call, &birth, zygote);
  if (code != COFFER_OK)
    zygote_end (zygote);
  return code;
}

int
zygote_lives (const struct zygote *zygote)
{
  return zygote->pid > 0 && zygote->maker == getpid ()
         && coffer_wait_fd (zygote->pidfd, POLLIN, 1, -1) == 0;
}

void
zygote_end (struct zygote *zygote)
{
  siginfo_t info;

  coffer_fd_close (&zygote->control);
  /* Of a process that was forked from its maker it is no child. */
  if (zygote->pid > 0 && zygote->maker == getpid ()) {
    syscall (SYS_pidfd_send_signal, zygote->pidfd, SIGKILL, NULL, 0);
    waitid ((idtype_t) P_PIDFD, (id_t) zygote->pidfd, &info,
            WEXITED | __WALL);
  }
  coffer_fd_close (&zygote->pidfd);
  *zygote = (struct zygote) ZYGOTE_NONE;
}

/* What lies in its queue is still read, and then the end. */
void
zygote_dismiss (struct zygote *zygote)
{
  coffer_fd_close (&zygote->control);
}

/* M: modules that are not there; E: why it cannot serve; R: it does. */
static int32_t
word_take (struct coffer_call *call, struct zygote *zygote, const char *text,
           size_t size)
{
  coffer_autobuffer struct coffer_buffer said = { 0 };
  char line[TEXT_MAX];

  coffer_buffer_add_escaped (&said, text + 1, size - 1);
  switch (text[0]) {
  case 'R':
    zygote->ready = 1;
    return COFFER_OK;
  case 'M':
    snprintf (line, sizeof line, "warm: not imported, as they are not there: "
              "%.1500s", said.data ? said.data : "");
    coffer_log (call, COFFER_LOG_WARNING, line);
    return COFFER_OK;
  default:
    return fail_with (call, COFFER_UNAVAILABLE,
                      "warm: the interpreter cannot serve: %.400s",
                      said.data ? said.data : "");
  }
}

int32_t
zygote_await (struct coffer_call *call, struct zygote *zygote, int wait)
{
  char text[TEXT_MAX];
  int32_t code = COFFER_OK;
  ssize_t n;
  int r;

  while (code == COFFER_OK && !zygote->ready) {
    r = coffer_wait_fd (zygote->control, POLLIN,
                        wait ? call->deadline_ns : 1,
                        wait ? call->cancel_fd : -1);
    if (r == 0 && !wait)
      return COFFER_OK;
    if (r <= 0)
      return coffer_fail_errno (call, errno, "warm: waiting for an interpreter");
    n = recv (zygote->control, text, sizeof text, MSG_DONTWAIT);
    if (n > 0)
      code = word_take (call, zygote, text, (size_t) n);
    else if (n == 0 || errno != EAGAIN)
      code = coffer_fail (call, COFFER_UNAVAILABLE,
                          "warm: the interpreter has ended, without a word");
  }
  return code;
}

int
zygote_fork (struct coffer_call *call, struct zygote *zygote, int init,
             int gate)
{
  char byte = 'F';
  struct iovec iov = { &byte, 1 };
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE (2 * sizeof (int))];
  } rights;
  struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1,
                            .msg_control = &rights,
                            .msg_controllen = sizeof rights };
  const int fds[2] = { init, gate };

  memset (&rights, 0, sizeof rights);
  rights.header.cmsg_level = SOL_SOCKET;
  rights.header.cmsg_type = SCM_RIGHTS;
  rights.header.cmsg_len = CMSG_LEN (sizeof fds);
  memcpy (CMSG_DATA (&rights.header), fds, sizeof fds);
  while (coffer_send_message (zygote->control, &message,
                              MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno != EAGAIN)
      return -1;
    if (coffer_wait_fd (zygote->control, POLLOUT, call->deadline_ns,
                        call->cancel_fd) <= 0)
      return -1;
  }
  zygote->runs++;
  return 0;
}
