/* SPDX-License-Identifier: Apache-2.0 */
/* The extension of Python by which an interpreter stands ready: coffer_warm,
 * with two functions.
 *
 *   serve (SOCKET)   waits for sandboxes to fork into.  Returns in each copy
 *                    whether there is nothing for it to do yet; None when the
 *                    socket is closed, or nobody has asked for anything for a
 *                    while.
 *   become ()        in a copy: waits for what there is to do, and returns the
 *                    environment, a list of bytes.
 *
 * Only what is stable of Python's interface is used, so that one file serves
 * every version from 3.9 on. */

#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "enter.h"

#define IDLE_MS 600000          /* whoever asks later has another one made */

/* A copy of a process has one thread, whatever that one had. */
static int
threads_count (void)
{
  static const char key[] = "\nThreads:";
  char text[4096], *at;
  int fd = open ("/proc/self/status", O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read (fd, text, sizeof text - 1);

  if (fd >= 0)
    close (fd);
  if (n <= 0)
    return 0;
  text[n] = '\0';
  at = strstr (text, key);
  return at == NULL ? 0 : atoi (at + strlen (key));
}

/* The init's process descriptor and the gate; 0: whoever asks has gone. */
static int
request_take (int fd, int out[2])
{
  char byte;
  struct iovec iov = { &byte, 1 };
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE (2 * sizeof (int))];
  } rights;
  struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1,
                            .msg_control = &rights,
                            .msg_controllen = sizeof rights };
  struct cmsghdr *at;
  ssize_t r;

  do
    r = recvmsg (fd, &message, MSG_CMSG_CLOEXEC);
  while (r < 0 && errno == EINTR);
  at = r == 1 ? CMSG_FIRSTHDR (&message) : NULL;
  if (at == NULL || at->cmsg_type != SCM_RIGHTS
      || at->cmsg_len != CMSG_LEN (2 * sizeof (int)))
    return 0;
  memcpy (out, CMSG_DATA (at), 2 * sizeof (int));
  return 1;
}

static PyObject *
environment_list (const struct warm_entered *entered)
{
  PyObject *list = PyList_New (0), *one;
  const char *at = entered->env;
  uint32_t i;

  for (i = 0; list != NULL && i < entered->envc; i++) {
    one = PyBytes_FromString (at);
    if (one == NULL || PyList_Append (list, one) == -1)
      Py_CLEAR (list);
    Py_XDECREF (one);
    at += strlen (at) + 1;
  }
  return list;
}

static int
wait_request (int fd)
{
  struct pollfd one = { fd, POLLIN, 0 };
  int r;

  do
    r = poll (&one, 1, IDLE_MS);
  while (r < 0 && errno == EINTR);
  return r > 0;
}

static PyObject *
serve (PyObject *module, PyObject *argument)
{
  const long fd = PyLong_AsLong (argument);
  int fds[2], copy;

  (void) module;
  if (fd < 0)
    return NULL;
  if (threads_count () != 1) {
    PyErr_SetString (PyExc_RuntimeError,
                     "it has more threads than one, or they cannot be counted");
    return NULL;
  }
  if (send ((int) fd, "R", 1, MSG_NOSIGNAL) != 1)
    Py_RETURN_NONE;
  while (wait_request ((int) fd) && request_take ((int) fd, fds)) {
    PyOS_BeforeFork ();
    copy = warm_enter (fds[0], fds[1]);
    if (copy) {
      PyOS_AfterFork_Child ();
      return PyBool_FromLong (warm_waits ());
    }
    PyOS_AfterFork_Parent ();
    close (fds[0]);
    close (fds[1]);
  }
  Py_RETURN_NONE;
}

static PyObject *
become (PyObject *module, PyObject *none)
{
  struct warm_entered entered;

  (void) module;
  (void) none;
  warm_become (&entered);
  return environment_list (&entered);
}

static PyMethodDef methods[] = { { "serve", serve, METH_O, NULL },
                                 { "become", become, METH_NOARGS, NULL },
                                 { NULL, NULL, 0, NULL } };
static struct PyModuleDef definition
  = { PyModuleDef_HEAD_INIT, "coffer_warm", NULL, -1, methods,
      NULL, NULL, NULL, NULL };

PyMODINIT_FUNC PyInit_coffer_warm (void);

PyMODINIT_FUNC
PyInit_coffer_warm (void)
{
  return PyModule_Create (&definition);
}
