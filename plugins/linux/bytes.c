/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the build as bytes of a program (begin.h). */

#define BYTES(name, file)                                                     \
  __asm__ (".pushsection .rodata." name ", \"a\"\n"                           \
           ".balign 4096\n"                                                   \
           ".globl " name "\n.hidden " name "\n" name ":\n"                   \
           ".incbin \"" file "\"\n"                                           \
           ".globl " name "_end\n.hidden " name "_end\n" name "_end:\n"       \
           ".byte 0\n.popsection")

BYTES ("coffer_linux_init", "plugins/linux/coffer-init");
BYTES ("coffer_linux_build", "plugins/linux/build-id");
