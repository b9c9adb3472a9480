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
#include "provider/redact.h"

#define CONFIG_MOST (1 << 20)
#define META_MOST (64 << 10)
#define AUTHS_MOST (64 << 10)
#define AUTHS_COUNT 128
#define PASSWD_MOST (1 << 20)
#define HUB "https://index.docker.io/v1/"
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

/* What the system has for this user: other threads may be asking too. */
static char *
home_of_user (void)
{
  struct passwd entry, *found = NULL;
  char *home = NULL;
  size_t size = 1024;
  int r = ERANGE;

  for (; r == ERANGE && size <= PASSWD_MOST; size *= 4) {
    auto_free char *bytes = malloc (size);

    r = bytes ? getpwuid_r (geteuid (), &entry, bytes, size, &found) : ENOMEM;
    if (r == 0 && found && found->pw_dir)
      home = strdup (found->pw_dir);
  }
  return home;
}

/* Root's is root's own, whatever HOME says. */
static char *
home_folder (void)
{
  const char *home = geteuid () == 0 ? NULL : variable ("HOME");
  auto_free char *folder = home ? strdup (home) : home_of_user ();

  return folder && folder[0] == '/' ? steal (folder) : NULL;
}

static char *
home_path (const char *name)
{
  auto_free char *home = home_folder ();

  return home ? text_printf ("%s/%s", home, name) : NULL;
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
  if (r == 0)
    r = parse (bytes, size, out, &error);
  if (bytes)
    explicit_bzero (bytes, size);       /* it may be a file of passwords */
  if (r < 0) {
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

static int
read_auths (const char *path, json_t **out, struct error **err)
{
  auto_free char *folder = strdup (path);
  char *slash = folder ? strrchr (folder, '/') : NULL;

  if (!slash)
    return error_set (err, E_NO_MEMORY, 0, "read %s", path);
  *slash = '\0';
  return read_below (folder[0] ? folder : "/",
                     (const char *const[]) { slash + 1, NULL }, CONFIG_MOST,
                     out, err);
}

/* Docker's own registry has a url for a name, and `podman login docker.io` writes
 * down the short one. */
static const json_t *
find_server (const json_t *object, const char *server, const char **found)
{
  static const char *const short_names[]
    = { "docker.io", "index.docker.io", NULL };
  const json_t *value = json_object_get (object, server);
  size_t i;

  *found = server;
  for (i = 0; !value && strcmp (server, HUB) == 0 && short_names[i]; i++) {
    *found = short_names[i];
    value = json_object_get (object, short_names[i]);
  }
  return value;
}

/* The helper for a server, NULL where there is none: one of its own, of which an
 * empty name says that it has none, goes before the one for all. */
static const char *
helper_for (const json_t *config, const char *server, const char **asked)
{
  const json_t *own = find_server (json_object_get (config, "credHelpers"),
                                   server, asked);
  const char *name;

  if (!own)
    *asked = server;
  name = json_string_value (own ? own : json_object_get (config, "credsStore"));
  return name && *name ? name : NULL;
}

/* Which servers have a helper, for who is given the rest. */
static json_t *
helped_servers (const json_t *config)
{
  const char *store = json_string_value (json_object_get (config, "credsStore"));
  json_t *own = json_object_get (config, "credHelpers");
  json_t *list = json_object ();
  const char *server, *asked;
  json_t *name;

  if (store && *store)
    json_object_set_new (list, "*", json_true ());
  json_object_foreach (own, server, name)
    if (json_is_string (name) && strcmp (server, "*") != 0)
      json_object_set_new (list, server,
                           json_boolean (*json_string_value (name) != '\0'));
  if (find_server (own, HUB, &asked))
    json_object_set_new (list, HUB,
                         json_boolean (helper_for (config, HUB, &asked)));
  return list;
}

/* One line, NULL without memory; made in one piece, so that no other stays. */
static char *
line_of (const json_t *value)
{
  const size_t size = json_dumpb (value, NULL, 0, JSON_COMPACT);
  char *line = size ? malloc (size + 1) : NULL;

  if (line && json_dumpb (value, line, size, JSON_COMPACT) == size)
    line[size] = '\0';
  return line;
}

static int
take_auths (const char *path, const json_t *auths, json_t *helped, char **out,
            struct error **err)
{
  auto_json json_t *kept
    = json_pack ("{s:O, s:O}", "auths", auths, "helped", helped);
  const json_t *hub;
  const char *name;
  char *text;

  hub = find_server (auths, HUB, &name);
  if (hub)
    json_object_set (json_object_get (kept, "auths"), HUB, (json_t *) hub);
  text = kept ? line_of (kept) : NULL;
  if (!text)
    return error_set (err, E_NO_MEMORY, 0, "read %s", path);
  if (strlen (text) <= AUTHS_MOST && json_object_size (auths) <= AUTHS_COUNT) {
    *out = text;
    return 0;
  }
  explicit_bzero (text, strlen (text));
  free (text);
  return error_set (err, E_CREDENTIALS_MISSING, 0, "%s: more credentials than "
                    "%d KiB, or of more than %d registries", path,
                    AUTHS_MOST / 1024, AUTHS_COUNT);
}

int
docker_client_auths (const char *path, char **out, struct error **err)
{
  auto_json_wiped json_t *config = NULL;
  auto_json json_t *helped = NULL, *none = json_object ();
  const json_t *auths;

  if (read_auths (path, &config, err) < 0)
    return -1;
  auths = json_object_get (config, "auths");
  if (!json_is_object (auths))
    auths = none;
  helped = helped_servers (config);
  if (json_object_size (auths) == 0 && json_object_size (helped) == 0)
    return 0;
  return take_auths (path, auths, helped, out, err);
}

int
docker_client_credential (const char *path, const char *server,
                          int64_t deadline_ns, int cancel_fd,
                          struct credential *out, struct error **err)
{
  auto_json_wiped json_t *config = NULL;
  auto_free char *home = NULL;
  const char *name, *asked;

  if (!credential_is_server (server))
    return error_set (err, E_CREDENTIALS_HELPER, 0, "what a credential helper "
                      "was to be asked for is no server");
  if (read_auths (path, &config, err) < 0)
    return -1;
  name = helper_for (config, server, &asked);
  if (!name)
    return 0;
  home = home_folder ();
  return credential_helper_get (name, asked, home, deadline_ns, cancel_fd, out,
                                err);
}

/* ---- what of them is secret ---------------------------------------------- */

/* Who is told of what is too short to be hidden is told of the password. */
static void
add_part (struct coffer_strings *parts, const char *part)
{
  if (strlen (part) >= REDACT_MIN_BYTES)
    coffer_strings_add (parts, part);
}

/* The user's name is none: an image is often called by it. */
static void
add_decoded (struct coffer_strings *parts, const char *auth)
{
  char *pair = NULL, *password;
  size_t size = 0;

  if (text_base64_decode (auth, &pair, &size) < 0)
    return;
  password = memchr (pair, ':', size);
  if (password && password[1])
    coffer_strings_add (parts, password + 1);
  add_part (parts, pair);
  explicit_bzero (pair, size);
  free (pair);
}

void
docker_client_secrets (const char *text, struct coffer_strings *parts)
{
  auto_json_wiped json_t *store = NULL;
  const char *server, *name;
  json_t *entry, *value;

  if (json_parse (text, strlen (text), &store, NULL) < 0)
    return;
  json_object_foreach (json_object_get (store, "auths"), server, entry)
    json_object_foreach (entry, name, value) {
      const char *word = json_string_value (value);

      if (!word || !*word || strcmp (name, "username") == 0
          || strcmp (name, "email") == 0)
        continue;
      if (strcmp (name, "auth") == 0)
        add_decoded (parts, word);
      add_part (parts, word);
    }
}
