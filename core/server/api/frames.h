/* SPDX-License-Identifier: Apache-2.0 */
/* The events of a command as a program reads them fastest:
 * Accept: application/x-coffer-frames.
 *
 * Each event is a head of 24 bytes and then `size` bytes.  Numbers are
 * little-endian.
 *
 *   0  u32  size       bytes that follow the head
 *   4  u8   kind       1 output, 2 dropped, 3 exited
 *   5  u8   stream     1 stdout, 2 stderr, 0 neither
 *   6  u16  0
 *   8  u64  seq        the event's number, from 1 on
 *  16  i64  time_ns    since the epoch
 *
 * What follows: of output, its bytes as they are; of dropped, a u64, how many
 * bytes there was no room for; of exited, the JSON object that the event has in
 * the other form, which is the last. */

#ifndef SERVER_API_FRAMES_H
#define SERVER_API_FRAMES_H

#define FRAMES_TYPE "application/x-coffer-frames"
#define FRAME_HEAD_SIZE 24

#endif /* SERVER_API_FRAMES_H */
