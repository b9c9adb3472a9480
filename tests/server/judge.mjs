// SPDX-License-Identifier: Apache-2.0
// Whether replies are what the document says, by ajv:
//   node judge.mjs FOLDER-OF-PACKAGES DOCUMENT < REPLIES
// A reply is a line of JSON {"schema": a pointer into the document, "what",
// "body"}.  Prints a line for each that is not, and last how many there were.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const require = createRequire (process.argv[2] + "/");
const Ajv = require ("ajv/dist/2020").default;
const document = JSON.parse (readFileSync (process.argv[3], "utf8"));
const ajv = new Ajv ({ strict: false, validateFormats: false });
ajv.addSchema ({ ...document, $id: "coffer:" });
let count = 0;
for await (const line of createInterface ({ input: process.stdin })) {
  const reply = JSON.parse (line);
  const check = ajv.getSchema ("coffer:#" + reply.schema);
  count++;
  if (!check)
    console.log (`${reply.what}: no schema at ${reply.schema}`);
  else if (!check (reply.body))
    console.log (`${reply.what}: ${ajv.errorsText (check.errors)}`);
}
console.log (`${count} replies`);
