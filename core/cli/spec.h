/* SPDX-License-Identifier: Apache-2.0 */
/* What `run` and `sandbox create` take to describe a sandbox, and what `run`,
 * `exec` and `shell` take to describe a command. */

#ifndef CLI_SPEC_H
#define CLI_SPEC_H

#include <coffer/buffer.h>

#include "cli/cli.h"
#include "sandbox/sandbox.h"

/* Rows of option tables. */
#define SPEC_OPTIONS                                                          \
  { "workspace", 'w', "DIR[:rw]", 0,                                          \
    "show DIR at /workspace; :rw lets it be written" },                        \
  { "volume", 'v', "SRC:DST[:ro]", OPTION_REPEATED,                           \
    "show SRC at DST, writable unless :ro is added" },                        \
  { "profile", 0, "NAME", 0, "take what this profile gives and allows" },      \
  { "template", 0, "NAME", 0, "a root file system of coffer template add" },   \
  { "image", 0, "IMAGE", 0, "make the root from this container image" },      \
  { "net", 0, "MODE", 0, "none (the default), host, or allow" },              \
  { "allow", 0, "NAME:PORT", OPTION_REPEATED,                                 \
    "what --net allow lets through" },                                        \
  { "mem", 0, "SIZE", 0, "memory of the whole sandbox, such as 512M" },       \
  { "cpus", 0, "NUMBER", 0, "processors' worth of time, such as 1.5" },       \
  { "pids", 0, "NUMBER", 0, "processes and threads at once" },                \
  { "disk", 0, "SIZE", 0, "bytes that /workspace and /tmp may hold" },        \
  { "accept", 0, "CAPABILITY", OPTION_REPEATED,                               \
    "go on where the provider lacks this protection" }

#define COMMAND_OPTIONS                                                       \
  { "env", 'e', "NAME[=VALUE]", OPTION_REPEATED,                              \
    "set a variable; NAME alone takes its value here" },                      \
  { "env-file", 0, "FILE", OPTION_REPEATED,                                   \
    "set variables from lines NAME=VALUE; --env wins" },                      \
  { "workdir", 0, "DIR", 0, "start in this folder inside" },                  \
  { "user", 0, "NAME", 0, "be this user inside" }

#define STREAM_OPTIONS                                                        \
  { "timeout", 0, "TIME", 0,                                                  \
    "kill it and all it started after TIME, like 30s" },                      \
  { "interactive", 'i', NULL, 0, "give standard input to the command" },      \
  { "tty", 't', NULL, 0, "run the command on a terminal" }

struct spec {
  struct sandbox_request request;       /* borrows from what follows */
  struct coffer_strings env;
  const char **allow, **accept, **ports, **metadata;
  struct sandbox_mount *mounts;
};

/* Fills a zeroed spec.  Options that the command does not have count as not
 * given. */
int spec_read (const struct cli *cli, struct spec *spec, struct error **err);
void spec_fini (struct spec *spec);
#define auto_spec __attribute__ ((cleanup (spec_fini)))

/* The variables of --env-file and --env, in that order. */
int spec_env (const struct cli *cli, struct coffer_strings *env,
              struct error **err);

/* "SRC:DST[:ro|:rw]": only the target's own colons end the source, so that a
 * source may hold any.  `fallback`: the target when none is written. */
int mount_parse (const char *word, const char *fallback, int writable,
                 struct sandbox_mount *out, struct error **err);
void mount_fini (struct sandbox_mount *mount);

/* The provider to ask for: --provider, else the environment; NULL: what the
 * configuration says. */
int provider_choose (const struct cli *cli, const char **id,
                     struct error **err);

#endif /* CLI_SPEC_H */
