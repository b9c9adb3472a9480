/* SPDX-License-Identifier: Apache-2.0 */
/* What commands on sandboxes ask for: of the daemon of this user when one
 * listens, of the one that --host names, else of this process.  They print the
 * same, as all of them work on the same records and a daemon's replies have the
 * names of the documents that are printed here.
 *
 * A command without a row's COMMAND_DAEMON never looks for one.  Where it was
 * not named, what a daemon does not do for its clients is done here: showing
 * folders of the caller's, terminals, the provider host. */

#ifndef CLI_WORK_H
#define CLI_WORK_H

#include "cli/host.h"
#include "client/client.h"

/* The daemon to ask; NULL: this process does it. */
int work_daemon (struct cli *cli, struct client **out, struct error **err);

/* The path of a sandbox, "/api/v1/sandboxes/ID" and `rest`, and one request
 * about it: *out as the function of sandbox.h gives it. */
int work_ask (struct cli *cli, const char *method, char *take_target,
              const json_t *body, json_t **out, struct error **err);

/* Of a daemon's reply, bytes as they are printed. */
void work_read_encodings (json_t *value);

/* As the functions of sandbox.h. */
int work_list (struct cli *cli, json_t **out, struct error **err);
int work_info (struct cli *cli, const char *id, json_t **out,
               struct error **err);
int work_kill (struct cli *cli, const char *id, int *already_gone,
               struct error **err);
int work_extend (struct cli *cli, const char *id, uint64_t ttl_ms,
                 json_t **out, struct error **err);
int work_pause (struct cli *cli, const char *id, json_t **out,
                struct error **err);
int work_resume (struct cli *cli, const char *id, json_t **out,
                 struct error **err);
int work_metrics (struct cli *cli, const char *id, json_t **out,
                  struct error **err);
int work_exec_list (struct cli *cli, const char *id, json_t **out,
                    struct error **err);
int work_exec_signal (struct cli *cli, const char *id, const char *exec,
                      int number, struct error **err);
/* *out: what `sandbox create --json` prints. */
int work_create (struct cli *cli, const struct sandbox_request *request,
                 struct output_progress *progress, json_t **out,
                 struct error **err);

int work_exec (struct cli *cli, const char *id,
               const struct exec_request *request,
               const struct exec_streams *streams, int cancel_fd,
               struct exec_result *result, struct error **err);
int work_attach (struct cli *cli, const char *id, const char *exec,
                 const struct exec_streams *streams, int cancel_fd,
                 struct exec_result *result, struct error **err);

/* A local descriptor into the sandbox or back, compared by its SHA-256; *out:
 * as sandbox_upload gives it.  `call` has the deadline and the progress. */
struct work_copy {
  const char *id, *path;
  int local;
  uint32_t mode;
  int parents;
  struct provider_call call;
};
int work_upload (struct cli *cli, const struct work_copy *copy, json_t **out,
                 struct error **err);
int work_download (struct cli *cli, const struct work_copy *copy,
                   json_t **out, struct error **err);
int work_ls (struct cli *cli, const struct work_copy *copy, uint32_t depth,
             json_t **out, struct error **err);

#endif /* CLI_WORK_H */
