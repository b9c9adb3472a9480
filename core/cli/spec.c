/* SPDX-License-Identifier: Apache-2.0 */
/* From options to a sandbox_request. */

#include <config.h>

#include "cli/spec.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/env.h"
#include "policy/bounds.h"

int
provider_choose (const struct cli *cli, const char **id, struct error **err)
{
  static const char *const variables[] = { "COFFER_PROVIDER", "BOX_BACKEND" };
  const char *value;
  size_t i;

  *id = cli->provider;
  for (i = 0; !*id && i < sizeof variables / sizeof *variables; i++) {
    value = secure_getenv (variables[i]);
    if (!value || !*value)
      continue;
    /* What is no sandbox is never chosen by something inherited unseen. */
    if (!strcmp (value, "host")) {
      error_set (err, E_DENIED, 0,
                 "%s names host, which is taken only from --provider or the "
                 "configuration", variables[i]);
      error_hint (err, "unset %s, or say --provider host", variables[i]);
      return -1;
    }
    *id = value;
  }
  if (*id && !text_is_id (*id))
    return error_set (err, E_INVALID, 0, "%s is not the id of a provider",
                      *id);
  return 0;
}

int
spec_env (const struct cli *cli, struct coffer_strings *env,
          struct error **err)
{
  auto_free const char **files = NULL, **words = NULL;
  size_t i;

  if (cli_values (cli, "env-file", &files, err) < 0
      || cli_values (cli, "env", &words, err) < 0)
    return -1;
  for (i = 0; files[i]; i++)
    if (env_add_file (env, files[i], err) < 0)
      return -1;
  for (i = 0; words[i]; i++)
    if (env_add (env, "--env", words[i], err) < 0)
      return -1;
  return 0;
}

/* ---- mounts ------------------------------------------------------------- */

static int
read_mounts (const struct cli *cli, struct spec *spec, struct error **err)
{
  struct sandbox_request *request = &spec->request;
  const char *workspace = cli_value (cli, "workspace");
  auto_free const char **volumes = NULL;
  size_t i, room;

  if (cli_values (cli, "volume", &volumes, err) < 0)
    return -1;
  for (room = 1; volumes[room - 1]; room++)
    ;
  spec->mounts = calloc (room, sizeof *spec->mounts);
  if (!spec->mounts)
    return error_set (err, E_NO_MEMORY, 0, "reading the mounts");
  request->mounts = spec->mounts;
  if (workspace) {
    if (mount_parse (workspace, "/workspace", 0, &spec->mounts[0], err) < 0)
      return error_wrap (err, "--workspace");
    request->n_mounts = 1;
  }
  for (i = 0; volumes[i]; i++) {
    if (mount_parse (volumes[i], NULL, 1, &spec->mounts[request->n_mounts],
                     err) < 0)
      return -1;
    request->n_mounts++;
  }
  return 0;
}

/* ---- limits and network ------------------------------------------------- */

static int
read_limits (const struct cli *cli, struct sandbox_request *request,
             struct error **err)
{
  uint64_t pids = 0;

  if (cli_size (cli, "mem", PROFILE_MEMORY, &request->memory_bytes, err) < 0
      || cli_size (cli, "disk", PROFILE_DISK, &request->disk_bytes, err) < 0
      || cli_number (cli, "pids", 1, REQUEST_PIDS_MAX, &pids, err) < 0
      || cli_cpus (cli, "cpus", &request->cpu_millis, err) < 0)
    return -1;
  request->pids = (uint32_t) pids;
  request->asked_ttl = cli_value (cli, "ttl") != NULL;
  return cli_duration (cli, "ttl", PROFILE_TTL, &request->ttl_ms, err);
}

static int
read_network (const struct cli *cli, struct spec *spec, struct error **err)
{
  static const char *const modes[] = { "none", "host", "allow", NULL };
  const char *mode = cli_value (cli, "net"), *nearest;
  size_t i;

  if (cli_values (cli, "allow", &spec->allow, err) < 0)
    return -1;
  for (i = 0; mode && modes[i] && strcmp (modes[i], mode); i++)
    ;
  if (mode && !modes[i]) {
    nearest = text_nearest (mode, modes);
    error_set (err, E_INVALID, 0, "--net is none, host or allow, not %s", mode);
    if (nearest)
      error_hint (err, "did you mean --net %s?", nearest);
    return -1;
  }
  /* Without a mode a profile, named or configured, may have it. */
  if (spec->allow[0] && mode && strcmp (mode, "allow")) {
    error_set (err, E_INVALID, 0, "--allow goes with --net allow, not --net %s",
               mode);
    error_hint (err, "write --net allow, or leave --allow out");
    return -1;
  }
  spec->request.network = mode;
  spec->request.allow = spec->allow;
  return 0;
}

/* ---- all of it ---------------------------------------------------------- */

static int
read_words (const struct cli *cli, struct spec *spec, struct error **err)
{
  struct sandbox_request *request = &spec->request;
  const char *workdir = cli_value (cli, "workdir");
  size_t i;

  if (workdir && workdir[0] != '/')
    return error_set (err, E_INVALID, 0,
                      "--workdir %s is not an absolute path inside", workdir);
  request->workdir = workdir;
  request->user = cli_value (cli, "user");
  request->profile = cli_value (cli, "profile");
  request->template_name = cli_value (cli, "template");
  request->image = cli_value (cli, "image");
  if (cli_values (cli, "accept", &spec->accept, err) < 0
      || cli_values (cli, "port", &spec->ports, err) < 0
      || cli_values (cli, "metadata", &spec->metadata, err) < 0)
    return -1;
  for (i = 0; spec->metadata[i]; i++)
    if (spec->metadata[i][0] == '=' || !strchr (spec->metadata[i], '='))
      return error_set (err, E_INVALID, 0, "--metadata %s is not NAME=VALUE",
                        spec->metadata[i]);
  request->accept = spec->accept;
  request->ports = spec->ports;
  request->metadata = spec->metadata;
  return 0;
}

int
spec_read (const struct cli *cli, struct spec *spec, struct error **err)
{
  if (provider_choose (cli, &spec->request.provider, err) < 0
      || read_words (cli, spec, err) < 0
      || read_limits (cli, &spec->request, err) < 0
      || read_network (cli, spec, err) < 0
      || read_mounts (cli, spec, err) < 0
      || spec_env (cli, &spec->env, err) < 0)
    return -1;
  spec->request.env = coffer_strings_view (&spec->env);
  return 0;
}

void
spec_fini (struct spec *spec)
{
  size_t i;

  for (i = 0; i < spec->request.n_mounts; i++)
    mount_fini (&spec->mounts[i]);
  free (spec->mounts);
  free (spec->allow);
  free (spec->accept);
  free (spec->ports);
  free (spec->metadata);
  coffer_strings_free (&spec->env);
}
