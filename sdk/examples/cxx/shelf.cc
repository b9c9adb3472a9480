/* SPDX-License-Identifier: Apache-2.0 */
/* A provider in C++: sandboxes are folders with files in them, and nothing
 * runs.  It shows what is different from C: exceptions end at the edge of
 * every operation, records are filled by name after `{}`, and what the
 * compiler exports of templates is kept in by shelf.map. */

#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>
#include <sys/stat.h>

#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/path.h>
#include <coffer/provider.h>

namespace {

struct folder
{
  explicit folder (int opened) : fd (opened) {}
  folder (const folder &) = delete;
  folder &operator= (const folder &) = delete;
  ~folder () { coffer_fd_close (&fd); }

  int fd;
  std::vector<std::string> metadata;    // as given, never changed
};

struct shelf
{
  std::mutex lock;
  std::map<std::string, std::shared_ptr<folder>> sandboxes;   // by the lock
  folder runtime { -1 };
};

/* No exception crosses into the host.  What is thrown becomes a code. */
template <typename F>
int32_t
guarded (coffer_call *call, F body) noexcept
{
  try {
    return body ();
  } catch (const std::bad_alloc &) {
    return coffer_fail (call, COFFER_LIMIT, "out of memory");
  } catch (const std::exception &error) {
    return coffer_fail (call, COFFER_INTERNAL, error.what ());
  }
}

/* Held by the caller for as long as it works in it, whoever kills it. */
std::shared_ptr<folder>
find (shelf &self, const char *id)
{
  const std::lock_guard<std::mutex> hold (self.lock);
  const auto at = self.sandboxes.find (id);

  return at == self.sandboxes.end () ? nullptr : at->second;
}

template <typename F>
int32_t
in_sandbox (coffer_call *call, void *self, const char *id, F body) noexcept
{
  return guarded (call, [&] {
    const auto sandbox = find (*static_cast<shelf *> (self), id);

    return sandbox ? body (*sandbox)
                   : coffer_fail (call, COFFER_NOT_FOUND, "no such sandbox");
  });
}

int32_t
emit_info (coffer_call *call, const char *id, const folder &sandbox)
{
  std::vector<const char *> metadata;
  coffer_sandbox_info info = {};

  for (const auto &entry : sandbox.metadata)
    metadata.push_back (entry.c_str ());
  metadata.push_back (nullptr);

  info.size = sizeof info;
  info.sandbox = info.native_id = id;
  info.state = "running";
  info.isolation = "none";
  info.workspace = "/";
  info.metadata = metadata.data ();
  return coffer_emit_sandbox_info (call, &info);
}

/* -- the instance ---- */

int32_t
shelf_open (coffer_call *call, void *, const char *const *,
            const coffer_open_opts *opts)
{
  return guarded (call, [&] {
    auto self = std::make_unique<shelf> ();

    if (COFFER_HAS (opts, runtime_dir) && opts->runtime_dir >= 0)
      self->runtime.fd = fcntl (opts->runtime_dir, F_DUPFD_CLOEXEC, 3);
    if (self->runtime.fd < 0)
      return coffer_fail (call, COFFER_UNAVAILABLE, "no runtime folder");
    const int32_t code = coffer_opened (call, self.get ());
    if (code == COFFER_OK)
      self.release ();
    return code;
  });
}

int32_t
shelf_close (coffer_call *, void *data, const coffer_close_opts *)
{
  const std::unique_ptr<shelf> self (static_cast<shelf *> (data));

  for (const auto &sandbox : self->sandboxes)
    coffer_remove_beneath (self->runtime.fd, sandbox.first.c_str (), 1,
                           nullptr);
  return COFFER_OK;
}

int32_t
shelf_probe (coffer_call *call, void *, const coffer_probe_opts *)
{
  coffer_fact fact = {};

  fact.size = sizeof fact;
  fact.name = "shelf";
  fact.state = "ok";
  fact.value = "folders can be made";
  fact.how = "a runtime folder was given at open";
  return coffer_emit_fact (call, &fact);
}

/* -- sandboxes ---- */

bool
name_is_valid (const std::string &id)
{
  return !id.empty () && id.size () <= 64
         && id.find_first_not_of ("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNO"
                                  "PQRSTUVWXYZ0123456789-_")
              == std::string::npos;
}

/* What is asked for and cannot be kept. */
bool
asks_too_much (const coffer_sandbox_spec &spec)
{
  const auto any = [] (const char *const *list) { return list && *list; };

  return spec.template_name || spec.image || spec.profile || spec.user
         || spec.filter || spec.network || any (spec.allow) || any (spec.env)
         || any (spec.ports) || any (spec.require)
         || (spec.mounts && *spec.mounts) || spec.ttl_ms
         || spec.memory_bytes || spec.cpu_millis || spec.pids
         || spec.disk_bytes || spec.inodes || spec.address_bytes
         || spec.file_bytes || spec.open_files || spec.lifeline >= 0;
}

int32_t
shelf_create (coffer_call *call, void *data, const char *id,
              const coffer_sandbox_spec *spec,
              const coffer_sandbox_create_opts *)
{
  auto &self = *static_cast<shelf *> (data);

  return guarded (call, [&] {
    if (spec->workdir && spec->workdir[0] != '/')
      return coffer_fail (call, COFFER_INVALID, "workdir must be absolute");
    if (asks_too_much (*spec))
      return coffer_fail (call, COFFER_UNSUPPORTED, "a shelf holds files only");
    if (!name_is_valid (id))
      return coffer_fail (call, COFFER_INVALID, "an id is 1 to 64 letters, "
                          "digits, dashes and underlines");
    const std::lock_guard<std::mutex> hold (self.lock);
    const auto old = self.sandboxes.find (id);
    if (old != self.sandboxes.end ())
      return emit_info (call, id, *old->second);        // twice, it is one
    if (mkdirat (self.runtime.fd, id, 0700) < 0)
      return coffer_fail_errno (call, errno, "the sandbox");
    auto made = std::make_shared<folder> (coffer_open_beneath (
      self.runtime.fd, id, O_RDONLY | O_DIRECTORY, 0));
    if (made->fd < 0)
      return coffer_fail_errno (call, errno, "the sandbox");
    for (auto entry = spec->metadata; entry && *entry; entry++)
      made->metadata.emplace_back (*entry);
    self.sandboxes.emplace (id, made);
    return emit_info (call, id, *made);
  });
}

int32_t
shelf_info (coffer_call *call, void *self, const char *id,
            const coffer_sandbox_info_opts *)
{
  return in_sandbox (call, self, id,
                     [&] (const folder &sandbox) {
                       return emit_info (call, id, sandbox);
                     });
}

int32_t
shelf_list (coffer_call *call, void *data, const coffer_sandbox_list_opts *)
{
  auto &self = *static_cast<shelf *> (data);

  return guarded (call, [&] {
    const std::lock_guard<std::mutex> hold (self.lock);
    int32_t code = COFFER_OK;

    for (const auto &sandbox : self.sandboxes)
      if (code == COFFER_OK)
        code = emit_info (call, sandbox.first.c_str (), *sandbox.second);
    return code;
  });
}

int32_t
shelf_kill (coffer_call *call, void *data, const char *id,
            const coffer_sandbox_kill_opts *)
{
  auto &self = *static_cast<shelf *> (data);

  return guarded (call, [&] {
    const std::lock_guard<std::mutex> hold (self.lock);

    if (!self.sandboxes.count (id))
      return coffer_fail (call, COFFER_NOT_FOUND, "no such sandbox");
    if (coffer_remove_beneath (self.runtime.fd, id, 1, nullptr) < 0)
      return coffer_fail_errno (call, errno, "the sandbox");
    self.sandboxes.erase (id);
    return static_cast<int32_t> (COFFER_OK);
  });
}

/* -- files ---- */

int32_t
shelf_read (coffer_call *call, void *self, const char *id, const char *path,
            int32_t out, const coffer_file_read_opts *opts)
{
  return in_sandbox (call, self, id, [&] (const folder &in) {
    return coffer_files_read (call, in.fd, path, out, opts);
  });
}

int32_t
shelf_write (coffer_call *call, void *self, const char *id, const char *path,
             int32_t from, const coffer_file_write_opts *opts)
{
  return in_sandbox (call, self, id, [&] (const folder &in) {
    return coffer_files_write (call, in.fd, path, from, opts);
  });
}

int32_t
shelf_stat (coffer_call *call, void *self, const char *id, const char *path,
            const coffer_file_stat_opts *)
{
  return in_sandbox (call, self, id, [&] (const folder &in) {
    return coffer_files_stat (call, in.fd, path);
  });
}

int32_t
shelf_entries (coffer_call *call, void *self, const char *id,
               const char *path, const coffer_file_list_opts *opts)
{
  return in_sandbox (call, self, id, [&] (const folder &in) {
    return coffer_files_list (call, in.fd, path, opts);
  });
}

int32_t
shelf_mkdir (coffer_call *call, void *self, const char *id, const char *path,
             const coffer_file_mkdir_opts *opts)
{
  return in_sandbox (call, self, id, [&] (const folder &in) {
    return coffer_files_mkdir (call, in.fd, path, opts);
  });
}

int32_t
shelf_remove (coffer_call *call, void *self, const char *id, const char *path,
              const coffer_file_remove_opts *opts)
{
  return in_sandbox (call, self, id, [&] (const folder &in) {
    return coffer_files_remove (call, in.fd, path, opts);
  });
}

int32_t
shelf_rename (coffer_call *call, void *self, const char *id, const char *from,
              const char *to, const coffer_file_rename_opts *)
{
  return in_sandbox (call, self, id, [&] (const folder &in) {
    return coffer_files_rename (call, in.fd, from, to);
  });
}

/* C++17 has no designated initialisers: filled once, while it is loaded. */
coffer_operations
fill () noexcept
{
  coffer_operations all = {};

  all.size = sizeof all;
  all.open = shelf_open;
  all.close = shelf_close;
  all.probe = shelf_probe;
  all.sandbox_create = shelf_create;
  all.sandbox_info = shelf_info;
  all.sandbox_list = shelf_list;
  all.sandbox_kill = shelf_kill;
  all.file_read = shelf_read;
  all.file_write = shelf_write;
  all.file_stat = shelf_stat;
  all.file_list = shelf_entries;
  all.file_mkdir = shelf_mkdir;
  all.file_remove = shelf_remove;
  all.file_rename = shelf_rename;
  return all;
}

const coffer_operations operations = fill ();

}

COFFER_PROVIDER (shelf, COFFER_THREADS_PARALLEL, 0, operations)
