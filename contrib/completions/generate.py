#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a completion script from the table of commands:

  coffer help --json | contrib/completions/generate.py bash >contrib/completions/coffer.bash

for bash, zsh and fish; `make update-completions` does it for all three, to be
run whenever a command or an option changes: tests/e2e/manual.sh compares.
"""

import json
import sys

# What an option's or a command's argument is, where a shell can help.
FILES = {"FILE", "LOCAL|-", "MANIFEST"}
FOLDERS = {"DIR", "DIR[:rw]", "SRC:DST[:ro]"}
WORDS = {"WHEN": "auto always never", "MODE": "none host allow"}
# Options and commands whose value is the first column of a list of ours.
LISTED = (("--profile", ("profile show",), "profile list"),
          ("--template", ("template remove",), "template list"),
          ("--provider", ("provider info", "provider doctor",
                          "provider verify"), "provider list"),
          ("", ("explain",), "explain"),
          ("", (), "sandbox list"))


def flags(options):
    for o in options:
        yield "--" + o["name"]
        if o["letter"]:
            yield "-" + o["letter"]


def groups(commands):
    found = {}
    for c in commands:
        words = c["words"].split()
        if len(words) == 2:
            found.setdefault(words[0], []).append(words[1])
    return found


def first_words(commands):
    return list(dict.fromkeys(c["words"].split()[0] for c in commands))


def by_argument(table, kinds):
    names = []
    for options in [table["options"]] + [c["options"] for c in table["commands"]]:
        for o in options:
            if o["argument"] in kinds:
                names += list(flags([o]))
    return list(dict.fromkeys(names))


def valued(table):
    every = {o["argument"] for c in table["commands"] for o in c["options"]}
    every |= {o["argument"] for o in table["options"]}
    return by_argument(table, every - {None})


def first_column(listing):
    return "$(coffer %s 2>/dev/null | awk 'NR > 1 { print $1 }')" % listing


def bash(table):
    commands = table["commands"]
    common = " ".join(flags(table["options"]))
    out = ["# SPDX-License-Identifier: Apache-2.0",
           "# Completion of coffer for bash; made by contrib/completions/generate.py.",
           "_coffer ()", "{",
           "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}",
           "  local word path= count=0 skip= i common='%s'" % common,
           "  COMPREPLY=()",
           "  for ((i = 1; i < COMP_CWORD; i++)); do",
           "    word=${COMP_WORDS[i]}",
           "    if [[ $skip ]]; then skip=; continue; fi",
           "    case $word in",
           "      --)",
           "        if ((COMP_CWORD == i + 1)); then COMPREPLY=($(compgen -f -c -- \"$cur\"))",
           "        else COMPREPLY=($(compgen -f -- \"$cur\")); fi",
           "        return ;;",
           "      %s) skip=1 ;;" % "|".join(valued(table)),
           "      -*) ;;",
           "      *) case $path in",
           "           ''|%s) path=${path:+$path }$word ;;" % "|".join(groups(commands)),
           "           *) count=$((count + 1)) ;;",
           "         esac ;;",
           "    esac",
           "  done",
           "  case $prev in",
           "    %s) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;" % "|".join(by_argument(table, FILES)),
           "    %s) COMPREPLY=($(compgen -d -- \"$cur\")); return ;;" % "|".join(by_argument(table, FOLDERS))]
    for kind, words in WORDS.items():
        out.append("    %s) COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;"
                   % ("|".join(by_argument(table, {kind})), words))
    for option, _, listing in LISTED:
        if option:
            out.append("    %s) COMPREPLY=($(compgen -W \"%s\" -- \"$cur\")); return ;;"
                       % (option, first_column(listing)))
    out += ["    %s) return ;;" % "|".join(valued(table)),
            "  esac",
            "  if [[ $cur != -* ]]; then",
            "    case $path in",
            "      '') COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;" % " ".join(first_words(commands))]
    for group, words in groups(commands).items():
        out.append("      %s) COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;" % (group, " ".join(words)))
    for _, takers, listing in LISTED:
        takers = takers or [c["words"] for c in commands
                            if c["words"].startswith("sandbox ")
                            and c["arguments"].startswith("ID")]
        out += ["      %s)" % "|".join("'%s'" % words for words in takers),
                "        if ((count == 0)); then",
                "          COMPREPLY=($(compgen -W \"%s\" -- \"$cur\"))" % first_column(listing),
                "          return",
                "        fi ;;"]
    out += ["      run) COMPREPLY=($(compgen -c -- \"$cur\")); return ;;",
            "    esac",
            "    COMPREPLY=($(compgen -f -- \"$cur\"))",
            "    return",
            "  fi",
            "  case $path in"]
    for c in commands:
        own = " ".join(flags(c["options"]))
        out.append("    '%s') COMPREPLY=($(compgen -W \"%s$common\" -- \"$cur\")) ;;"
                   % (c["words"], own + " " if own else ""))
    out += ["    *) COMPREPLY=($(compgen -W \"$common\" -- \"$cur\")) ;;",
            "  esac", "}", "complete -F _coffer coffer"]
    return out


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh_spec(o):
    text = o["help"].replace("[", "(").replace("]", ")").replace(":", " ")
    kind = o["argument"]
    tail = ""
    if kind:
        action = ("_files" if kind in FILES else "_files -/" if kind in FOLDERS
                  else "(%s)" % WORDS[kind] if kind in WORDS else " ")
        tail = ":%s:%s" % (kind.replace(":", "\\:"), action)
    star = "*" if o["repeated"] else ""
    names = list(flags([o]))
    return [quoted("%s%s[%s]%s" % (star, n, text, tail)) for n in names]


def zsh(table):
    commands = table["commands"]
    out = ["#compdef coffer",
           "# SPDX-License-Identifier: Apache-2.0",
           "# Completion of coffer for zsh; made by contrib/completions/generate.py.",
           "_coffer () {", "  local -a common own",
           "  local path= word skip= i",
           "  for ((i = 2; i < CURRENT; i++)); do",
           "    word=$words[i]",
           "    if [[ -n $skip ]]; then skip=; continue; fi",
           "    case $word in",
           "      --) _normal; return ;;",
           "      %s) skip=1 ;;" % "|".join(valued(table)),
           "      -*) ;;",
           "      *) case $path in",
           "           ''|%s) path=${path:+$path }$word ;;" % "|".join(groups(commands)),
           "         esac ;;",
           "    esac",
           "  done",
           "  common=("]
    for o in table["options"]:
        out += ["    " + s for s in zsh_spec(o)]
    out += ["  )", "  case $path in",
            "    '') own=('1:command:(%s)') ;;" % " ".join(first_words(commands))]
    for group, words in groups(commands).items():
        out.append("    %s) own=('1:group:(%s)' '2:command:(%s)') ;;" % (group, group, " ".join(words)))
    for c in commands:
        specs = [s for o in c["options"] for s in zsh_spec(o)]
        out.append("    %s) own=(" % quoted(c["words"]))
        out += ["      " + s for s in specs]
        out.append("      '*:argument:_files') ;;")
    out += ["  esac", "  _arguments -S $common $own", "}", "_coffer \"$@\""]
    return out


def fish(table):
    commands = table["commands"]
    known = groups(commands)
    out = ["# SPDX-License-Identifier: Apache-2.0",
           "# Completion of coffer for fish; made by contrib/completions/generate.py.",
           "complete -c coffer -f"]

    def option_line(condition, o):
        kind = o["argument"]
        line = "complete -c coffer" + (" -n %s" % quoted(condition) if condition else "")
        line += " -l " + o["name"]
        if o["letter"]:
            line += " -s " + o["letter"]
        if kind:
            line += " -r"
            if kind in FILES or kind in FOLDERS:
                line += " -F"
            elif kind in WORDS:
                line += " -a " + quoted(WORDS[kind])
        return line + " -d " + quoted(o["help"])

    for o in table["options"]:
        out.append(option_line("", o))
    for word in first_words(commands):
        summary = next((c["summary"] for c in commands if c["words"] == word), "commands on a " + word)
        out.append("complete -c coffer -n __fish_use_subcommand -a %s -d %s" % (word, quoted(summary)))
    for c in commands:
        words = c["words"].split()
        if len(words) == 2:
            condition = "__fish_seen_subcommand_from %s; and not __fish_seen_subcommand_from %s" % (
                words[0], " ".join(known[words[0]]))
            out.append("complete -c coffer -n %s -a %s -d %s" % (quoted(condition), words[1], quoted(c["summary"])))
            condition = "__fish_seen_subcommand_from %s; and __fish_seen_subcommand_from %s" % tuple(words)
        else:
            condition = "__fish_seen_subcommand_from " + words[0]
        for o in c["options"]:
            out.append(option_line(condition, o))
    return out


def main():
    makers = {"bash": bash, "zsh": zsh, "fish": fish}
    if len(sys.argv) != 2 or sys.argv[1] not in makers:
        sys.exit("usage: coffer help --json | generate.py bash|zsh|fish")
    table = json.load(sys.stdin)
    sys.stdout.write("\n".join(makers[sys.argv[1]](table)) + "\n")


if __name__ == "__main__":
    main()
