/* SPDX-License-Identifier: MIT */
#ifndef TLOB_MESSAGES_H
#define TLOB_MESSAGES_H

/*
 * The MESSAGE_ID= of each kind of journal entry that tlobd writes, as a string for
 * sd_journal_send(). Each is explained in the message catalog ("journalctl -x"):
 * systemd/tlob.catalog.
 */

#define TLOB_MESSAGE_VIOLATION_STR        "270a2c0044b740cdb4f203a0156802cb"
#define TLOB_MESSAGE_COMPLETION_STR       "b712727f10d94a359d0790c76c950ef5"
#define TLOB_MESSAGE_SUPPRESSION_STR      "35d6608ac4a2420eb878e72c39b95a58"
#define TLOB_MESSAGE_LOSS_STR             "68d65f2e4d154de0a20e52bc955cb39b"
#define TLOB_MESSAGE_UNWRITTEN_STR        "d809078b7e0c45c2a95ce24db022bb4d"
#define TLOB_MESSAGE_BINDING_FAILURE_STR  "f7f92e8a0b104e8a83be1c5c2aa82403"
#define TLOB_MESSAGE_BINDING_RECOVERY_STR "fca8f886af404bf7b0c149a1150e30cc"
#define TLOB_MESSAGE_WORSE_BUILD_STR      "eb5643eec7cd4a37b1350872d2de9115"
#define TLOB_MESSAGE_TOLERANCE_BROKEN_STR "4dfa99e4dab9455c9206e11d11ff6673"
#define TLOB_MESSAGE_TOLERANCE_KEPT_STR   "ed0ab8fc29704f6cb561fc69f8ec4f93"

#endif
