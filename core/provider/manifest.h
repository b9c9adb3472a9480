/* SPDX-License-Identifier: Apache-2.0 */
/* A provider's manifest: what it is, which bytes it is, what it claims, what
 * it may do.  coffer-manifest(5) is the manual of every key. */

#ifndef PROVIDER_MANIFEST_H
#define PROVIDER_MANIFEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/sha256.h"
#include "base/yaml.h"

struct manifest_module {
  char *arch;                   /* x86_64, aarch64: uname's machine */
  char *file;                   /* a name in the manifest's folder */
  char sha256[SHA256_HEX_SIZE]; /* "" : not sealed */
};

struct manifest_file {
  char *name;                   /* a name in the manifest's folder */
  char sha256[SHA256_HEX_SIZE];
  int late;                     /* read when the module asks, not for `open` */
};

enum manifest_config_type {
  CONFIG_TEXT, CONFIG_SECRET, CONFIG_URL, CONFIG_SIZE, CONFIG_DURATION,
  CONFIG_NUMBER, CONFIG_FLAG, CONFIG_PATH, CONFIG_PROXY, CONFIG_PEM
};

/* What of the docker command's own configuration (docker-client.h) a value may
 * come from. */
enum manifest_config_from {
  FROM_NOWHERE, FROM_DOCKER_HOST, FROM_DOCKER_CA, FROM_DOCKER_CERTIFICATE,
  FROM_DOCKER_KEY, FROM_DOCKER_AUTHS, FROM_PODMAN_AUTHS
};

struct manifest_config {
  char *key;                    /* [a-z][a-z0-9_]{0,31} */
  enum manifest_config_type type;
  int required;
  char *env;                    /* variable that it may come from, or NULL */
  enum manifest_config_from from;
  char *default_value;          /* text form, or NULL */
  char *help;
};

/* `permissions`: each word's meaning is in coffer-manifest(5). */
struct manifest_permissions {
  char **connect;               /* config, NAME:PORT, *.NAME:PORT, unix:PATH */
  char **read, **write, **exec; /* absolute paths; exec: or the word any */
  int exec_any;
  int namespaces;               /* clone, unshare, setns, mount, pivot_root */
  int cgroup;                   /* write below the caller's own cgroup */
};

struct manifest_limits {        /* of the worker; 0: the default */
  uint64_t memory_bytes;
  uint64_t files;
  uint64_t processes;
  uint64_t calls;               /* at once */
};

struct manifest {
  char *path;                   /* where it was read from */
  char sha256[SHA256_HEX_SIZE]; /* of the manifest's own bytes */
  char *id, *summary, *version, *license, *homepage;
  size_t n_modules, n_files, n_config;
  struct manifest_module *modules;
  struct manifest_file *files;
  struct manifest_config *config;
  uint16_t contract_major, contract_minor;
  int threads;                  /* enum coffer_threads */
  char **capabilities;          /* NULL-terminated, all known words */
  char **never;                 /* codes that never come, likewise; or NULL */
  char *isolation_kind;         /* none, namespaces, container, vm, remote-vm */
  int host_kernel_shared;
  struct manifest_permissions permissions;
  struct manifest_limits limits;
};

#define MANIFEST_VERSION 1
#define MANIFEST_MAX_MODULES 16
#define MANIFEST_MAX_FILES 64
#define MANIFEST_MAX_CONFIG 64
#define MANIFEST_MAX_PERMISSIONS 128    /* per word */

/* Parses bytes; `path` is for messages. */
int manifest_parse (const char *bytes, size_t size, const char *path,
                    struct manifest **out, struct error **err);
/* Opens NAME in the folder `dir`, checks owner and mode, parses. */
int manifest_load (int dir, const char *name, const char *shown_path,
                   struct manifest **out, struct error **err);
void manifest_free (struct manifest *manifest);
DEFINE_CLEANUP (struct manifest *, manifest_free, auto_manifest)
#define auto_manifest CLEANUP (auto_manifest)

/* The module for this machine's architecture: E_MODULE when there is none. */
int manifest_module (const struct manifest *manifest,
                     const struct manifest_module **out, struct error **err);

/* The keys of a section: "" (top), module, files, contract, isolation,
 * config (of one value), permissions, limits.  Returns how many it wrote. */
size_t manifest_keys (const char *section, const char **keys, size_t room);
int manifest_key_required (const char *section, const char *key);

/* ---- the vocabulary, which operator files share -------------------------- */

const char *manifest_config_type_name (enum manifest_config_type type);
/* Never shown, logged or stored: given by where it is to be found. */
int manifest_config_is_secret (enum manifest_config_type type);
/* Words of `from`, NULL-terminated, in the order of the enumeration. */
extern const char *const manifest_config_froms[];
const struct manifest_config *manifest_find_config (
  const struct manifest *manifest, const char *key);
/* NULL when `value` is one of the type, else what it must be ("must be …"):
 * never the value itself, which may be a secret. */
const char *manifest_check_value (enum manifest_config_type type,
                                  const char *value);

/* One component: letters, digits and ._+- and no leading dot or dash. */
int manifest_is_file_name (const char *s);
/* Absolute, no empty, "." or ".." component, no slash at the end. */
int manifest_is_path (const char *s);
/* config, NAME:PORT, *.NAME:PORT, unix:PATH */
int manifest_is_target (const char *s);
/* Name of this machine's architecture, as manifests write it. */
const char *manifest_machine (void);
/* NULL-terminated. */
extern const char *const manifest_archs[];
extern const char *const manifest_isolation_kinds[];

/* Reads a `permissions` or `limits` map into a zeroed struct: also the form
 * that operator files use. */
int manifest_read_permissions (const struct yaml_source *source,
                               const struct yaml_node *node,
                               struct manifest_permissions *out,
                               struct error **err);
void manifest_permissions_fini (struct manifest_permissions *permissions);
int manifest_read_limits (const struct yaml_source *source,
                          const struct yaml_node *node,
                          struct manifest_limits *out, struct error **err);

#endif /* PROVIDER_MANIFEST_H */
