/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts and credentials of the docker command. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/place.h"
#include "base/sha256.h"
#include "base/text.h"
#include "provider/docker-client.h"

#define CONFIG_MOST (1 << 20)
#define META_MOST (64 << 10)
#define AUTHS_MOST (64 << 10)
#define PORT_PLAIN ":2375"
#define PORT_TLS ":2376"

void
docker_client_fini (struct docker_client *client)
{
  free (client->host);
  free (client->origin);
  free (client->certificates);
  memset (client, 0, sizeof *client);
}

static const char *
variable (const char *name)
{
  const char *value = secure_getenv (name);

  return value && value[0] ? value : NULL;
}

/* Root's is root's own, whatever HOME says. */
static char *
home_path (const char *name)
{
  const char *home = geteuid () == 0 ? NULL : variable ("HOME");
  const struct passwd *entry = home ? NULL : getpwuid (geteuid ());

  home = home ? home : entry ? entry->pw_dir : NULL;
  return home && home[0] == '/' ? text_printf ("%s/%s", home, name) : NULL;
}

/* NULL: there is no such folder to be had. */
static char *
config_folder (void)
{
  const char *folder = variable ("DOCKER_CONFIG");

  if (folder == NULL)
    return home_path (".docker");
  return folder[0] == '/' ? strdup (folder) : NULL;
}

/* ---- reading ------------------------------------------------------------- */

/* A parser quotes what it could not read: of a file of passwords, nothing is. */
static int
parse (const char *bytes, size_t size, json_t **out, struct error **err)
{
  int r = json_parse (bytes, size, out, err);
  char *message = r < 0 ? (*err)->message : NULL;
  char *quoted = message ? strstr (message, " near ") : NULL;

  if (quoted)
    *quoted = '\0';
  return r;
}

/* A file that is trusted below `folder`, whose path is `parts`; each folder on the
 * way is no link and trusted too.  1: *out; 0: there is none. */
static int
read_below (const char *folder, const char *const *parts, size_t limit,
            json_t **out, struct error **err)
{
  auto_free char *shown = strdup (folder);
  auto_free char *bytes = NULL;
  auto_error struct error *error = NULL;
  size_t size = 0;
  coffer_autoclose int dir = open (folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  int number = errno, r;

  for (; dir >= 0 && shown && parts[1]; parts++) {
    auto_free char *deeper = text_printf ("%s/%s", shown, parts[0]);
    int next = openat (dir, parts[0],
                       O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    number = errno;
    if (place_check_trusted (dir, shown, err) < 0) {
      coffer_fd_close (&next);
      return -1;
    }
    close (dir);
    dir = next;
    free (shown);
    shown = steal (deeper);
  }
  if (dir < 0)
    return number == ENOENT || number == ENOTDIR || number == EACCES
             ? 0 : error_set (err, E_CONFIG, number, "open %s", folder);
  if (shown == NULL)
    return error_set (err, E_NO_MEMORY, 0, "reading %s", folder);
  if (place_check_trusted (dir, shown, err) < 0)
    return -1;
  r = place_read_trusted (dir, parts[0], parts[0], limit, E_CONFIG, &bytes,
                          &size, &error);
  if (r < 0 && error->sys_errno == ENOENT)
    return 0;
  if (r < 0 || parse (bytes, size, out, &error) < 0) {
    error_move (err, steal (error));
    return error_wrap (err, "%s/%s", shown, parts[0]);
  }
  return 1;
}

static int
read_config (const char *folder, json_t **out, struct error **err)
{
  static const char *const parts[] = { "config.json", NULL };

  return read_below (folder, parts, CONFIG_MOST, out, err);
}

/* ---- where the engine is ------------------------------------------------- */

/* As that command has it: TLS is a matter of certificates and not of the scheme,
 * and without a port it is the usual one. */
static char *
url_of (const char *host, int tls)
{
  const char *name = host + strlen ("tcp://");
  const char *end, *port;

  if (strncmp (host, "tcp://", 6) != 0)
    return strdup (host);
  end = strchr (name, ']');
  port = strchr (end ? end : name, ':') ? "" : tls ? PORT_TLS : PORT_PLAIN;
  return text_printf ("%s://%s%s", tls ? "https" : "tcp", name, port);
}

static int
check_scheme (const char *host, const char *origin, struct error **err)
{
  if (strncmp (host, "ssh://", 6) != 0)
    return 0;
  error_set (err, E_CONFIG_VALUE, 0, "%s names an engine behind ssh, which is "
             "not reached from here", origin);
  error_hint (err, "make a tunnel, ssh -nNT -L "
              "/run/user/UID/docker.sock:/var/run/docker.sock HOST, and set "
              "DOCKER_HOST=unix:///run/user/UID/docker.sock");
  return -1;
}

static int
take_variable (const char *folder, const char *host,
               struct docker_client *out, struct error **err)
{
  const int tls = variable ("DOCKER_TLS_VERIFY") || variable ("DOCKER_TLS");
  const char *certificates = variable ("DOCKER_CERT_PATH");

  if (check_scheme (host, "DOCKER_HOST", err) < 0)
    return -1;
  out->by_variable = 1;
  out->origin = strdup ("env:DOCKER_HOST");
  out->host = url_of (host, tls);
  if (tls && !certificates)
    certificates = folder;
  if (tls && certificates && certificates[0] != '/')
    return error_set (err, E_CONFIG_VALUE, 0,
                      "DOCKER_CERT_PATH is not an absolute path");
  if (tls && certificates)
    out->certificates = strdup (certificates);
  return out->origin && out->host ? 0
         : error_set (err, E_NO_MEMORY, 0, "reading DOCKER_HOST");
}

/* As that command names them. */
static int
is_context (const char *name)
{
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  size_t n = strspn (name, "abcdefghijklmnopqrstuvwxyz"
                           "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-");

  return n > 1 && n < 256 && name[n] == '\0' && strchr (letters, name[0]);
}

static int
fail_context (const char *name, const char *what, struct error **err)
{
  auto_free char *shown = text_escape (name, strnlen (name, 64));

  error_set (err, E_CONFIG_VALUE, 0, "the docker context %s %s",
             shown ? shown : "?", what);
  error_hint (err, "docker context ls shows them; DOCKER_CONTEXT=default, or "
              "`engine` in providers.d/docker.yaml, does without");
  return -1;
}

static int
take_meta (const char *folder, const char *hash, const char *name,
           const json_t *meta, struct docker_client *out, struct error **err)
{
  const json_t *endpoint
    = json_object_get (json_object_get (meta, "Endpoints"), "docker");
  const char *host = json_string_value (json_object_get (endpoint, "Host"));
  const char *own = json_string_value (json_object_get (meta, "Name"));
  auto_free char *origin = text_printf ("the docker context %s", name);
  auto_free char *tls = text_printf ("%s/contexts/tls/%s/docker", folder, hash);

  if (!origin || !tls)
    return error_set (err, E_NO_MEMORY, 0, "reading a docker context");
  if (!own || strcmp (own, name) != 0 || !host || !host[0])
    return fail_context (name, "names no engine", err);
  if (json_is_true (json_object_get (endpoint, "SkipTLSVerify")))
    return fail_context (name, "believes whoever answers (SkipTLSVerify)", err);
  if (check_scheme (host, origin, err) < 0)
    return -1;
  if (access (tls, F_OK) == 0)
    out->certificates = steal (tls);
  out->host = url_of (host, out->certificates != NULL);
  return out->host ? 0 : error_set (err, E_NO_MEMORY, 0, "reading %s", origin);
}

static int
take_context (const char *folder, const char *name, struct docker_client *out,
              struct error **err)
{
  char hash[SHA256_HEX_SIZE];
  const char *const parts[] = { "contexts", "meta", hash, "meta.json", NULL };
  auto_json json_t *meta = NULL;
  int r;

  if (!is_context (name))
    return fail_context (name, "has no name of a context", err);
  sha256_hex (name, strlen (name), hash);
  r = folder ? read_below (folder, parts, META_MOST, &meta, err) : 0;
  if (r == 0)
    return fail_context (name, "is not there", err);
  if (r < 0 || take_meta (folder, hash, name, meta, out, err) < 0)
    return -1;
  out->origin = out->by_variable ? strdup ("env:DOCKER_CONTEXT")
                                 : text_printf ("context:%s", name);
  return out->origin ? 0
         : error_set (err, E_NO_MEMORY, 0, "reading a docker context");
}

/* Who may write there says which files are whose; one that is not there has
 * none. */
static int
check_certificates (const struct docker_client *client, struct error **err)
{
  coffer_autoclose int dir
    = client->certificates
        ? open (client->certificates, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

  return dir < 0 ? 0 : place_check_trusted (dir, client->certificates, err);
}

int
docker_client_read (int only_variables, struct docker_client *out,
                    struct error **err)
{
  const char *host = variable ("DOCKER_HOST");
  const char *name = host ? NULL : variable ("DOCKER_CONTEXT");
  auto_free char *folder = config_folder ();
  auto_json json_t *config = NULL;

  if (host)
    return take_variable (folder, host, out, err) < 0
             ? -1 : check_certificates (out, err);
  out->by_variable = name != NULL;
  if (!name && !only_variables && folder
      && read_config (folder, &config, err) < 0)
    return -1;
  if (!name)
    name = json_string_value (json_object_get (config, "currentContext"));
  if (!name || !name[0] || strcmp (name, "default") == 0)
    return 0;
  return take_context (folder, name, out, err) < 0
           ? -1 : check_certificates (out, err);
}

/* ---- credentials --------------------------------------------------------- */

static char *
existing (char *take_path)
{
  if (take_path && access (take_path, F_OK) == 0)
    return take_path;
  free (take_path);
  return NULL;
}

char *
docker_client_auths_path (int podman)
{
  const char *file = podman ? variable ("REGISTRY_AUTH_FILE") : NULL;
  const char *runtime = podman ? variable ("XDG_RUNTIME_DIR") : NULL;
  auto_free char *folder = NULL;
  char *path = NULL;

  if (file)
    return file[0] == '/' ? strdup (file) : NULL;
  if (runtime && runtime[0] == '/')
    path = existing (text_printf ("%s/containers/auth.json", runtime));
  if (podman && !path)
    path = existing (home_path (".config/containers/auth.json"));
  folder = path ? NULL : config_folder ();
  return path ? path
         : folder ? existing (text_printf ("%s/config.json", folder)) : NULL;
}

int
docker_client_auths (const char *path, char **out, struct error **err)
{
  auto_free char *folder = strdup (path);
  char *slash = folder ? strrchr (folder, '/') : NULL;
  auto_json json_t *config = NULL, *kept = NULL;
  json_t *auths;
  char *text;
  int r;

  if (!slash)
    return error_set (err, E_NO_MEMORY, 0, "read %s", path);
  *slash = '\0';
  r = read_below (folder[0] ? folder : "/",
                  (const char *const[]) { slash + 1, NULL }, CONFIG_MOST,
                  &config, err);
  auths = r < 0 ? NULL : json_object_get (config, "auths");
  if (r < 0 || !json_is_object (auths) || json_object_size (auths) == 0)
    return r < 0 ? -1 : 0;
  kept = json_pack ("{s:O}", "auths", auths);
  text = kept ? json_dumps (kept, JSON_COMPACT) : NULL;
  if (!text || strlen (text) > AUTHS_MOST) {
    r = text ? error_set (err, E_CREDENTIALS_MISSING, 0, "%s: more credentials "
                          "than %d KiB", path, AUTHS_MOST / 1024)
             : error_set (err, E_NO_MEMORY, 0, "read %s", path);
    free (text);
    return r;
  }
  *out = text;
  return 0;
}
