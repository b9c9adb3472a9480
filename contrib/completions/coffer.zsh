#compdef coffer
# SPDX-License-Identifier: Apache-2.0
# Completion of coffer for zsh; made by contrib/completions/generate.py.
_coffer () {
  local -a common own
  local path= word skip= i
  for ((i = 2; i < CURRENT; i++)); do
    word=$words[i]
    if [[ -n $skip ]]; then skip=; continue; fi
    case $word in
      --) _normal; return ;;
      --provider|--host|--color|--workspace|-w|--volume|-v|--profile|--template|--image|--net|--allow|--mem|--cpus|--pids|--disk|--accept|--env|-e|--env-file|--workdir|--user|--timeout|--python|--artifacts|--ttl|--port|--metadata|--command|-c|--mode|--depth|--listen|--tenant|--rights|--sha256|--ref|--subdir|--output|--sign|--dir|--only|--seed|--junit|--log|--socket|--anonymous|--allow-host) skip=1 ;;
      -*) ;;
      *) case $path in
           ''|sandbox|template|profile|token|provider) path=${path:+$path }$word ;;
         esac ;;
    esac
  done
  common=(
    '--json[print JSON on stdout, errors included]'
    '--provider[use this provider, not the configured one]:ID: '
    '--host[ask the daemon at this socket, not the own one]:unix\:PATH: '
    '--yes[ask nothing  every question is answered with yes]'
    '--verbose[say on stderr what is done]'
    '--color[auto, always or never]:WHEN:(auto always never)'
    '--version[print the version and exit]'
    '--help[print this and exit]'
    '-h[print this and exit]'
  )
  case $path in
    '') own=('1:command:(run sandbox template profile token provider seal kit serve call contract explain version help)') ;;
    sandbox) own=('1:group:(sandbox)' '2:command:(create list info kill prune connect extend pause resume exec attach shell upload download ls metrics ps signal port)') ;;
    template) own=('1:group:(template)' '2:command:(add list remove)') ;;
    profile) own=('1:group:(profile)' '2:command:(list show)') ;;
    token) own=('1:group:(token)' '2:command:(create list revoke)') ;;
    provider) own=('1:group:(provider)' '2:command:(list info enable disable default doctor verify install upgrade uninstall pack)') ;;
    'run') own=(
      '--workspace[show DIR at /workspace;  rw lets it be written]:DIR[\:rw]:_files -/'
      '-w[show DIR at /workspace;  rw lets it be written]:DIR[\:rw]:_files -/'
      '*--volume[show SRC at DST, writable unless  ro is added]:SRC\:DST[\:ro]:_files -/'
      '*-v[show SRC at DST, writable unless  ro is added]:SRC\:DST[\:ro]:_files -/'
      '--profile[take what this profile gives and allows]:NAME: '
      '--template[a root file system of coffer template add]:NAME: '
      '--image[make the root from this container image]:IMAGE: '
      '--net[none (the default), host, or allow]:MODE:(none host allow)'
      '*--allow[what --net allow lets through]:NAME\:PORT: '
      '--mem[memory of the whole sandbox, such as 512M]:SIZE: '
      '--cpus[processors'\'' worth of time, such as 1.5]:NUMBER: '
      '--pids[processes and threads at once]:NUMBER: '
      '--disk[bytes that /workspace and /tmp may hold]:SIZE: '
      '*--accept[go on where the provider lacks this protection]:CAPABILITY: '
      '*--env[set a variable; NAME alone takes its value here]:NAME[=VALUE]: '
      '*-e[set a variable; NAME alone takes its value here]:NAME[=VALUE]: '
      '*--env-file[set variables from lines NAME=VALUE; --env wins]:FILE:_files'
      '--workdir[start in this folder inside]:DIR:_files -/'
      '--user[be this user inside]:NAME: '
      '--timeout[kill it and all it started after TIME, like 30s]:TIME: '
      '--interactive[give standard input to the command]'
      '-i[give standard input to the command]'
      '--tty[run the command on a terminal]'
      '-t[run the command on a terminal]'
      '--python[run this Python code, guarded; - is stdin]:FILE:_files'
      '--artifacts[of --python  keep here what it wrote to ./out]:DIR:_files -/'
      '*:argument:_files') ;;
    'sandbox create') own=(
      '--workspace[show DIR at /workspace;  rw lets it be written]:DIR[\:rw]:_files -/'
      '-w[show DIR at /workspace;  rw lets it be written]:DIR[\:rw]:_files -/'
      '*--volume[show SRC at DST, writable unless  ro is added]:SRC\:DST[\:ro]:_files -/'
      '*-v[show SRC at DST, writable unless  ro is added]:SRC\:DST[\:ro]:_files -/'
      '--profile[take what this profile gives and allows]:NAME: '
      '--template[a root file system of coffer template add]:NAME: '
      '--image[make the root from this container image]:IMAGE: '
      '--net[none (the default), host, or allow]:MODE:(none host allow)'
      '*--allow[what --net allow lets through]:NAME\:PORT: '
      '--mem[memory of the whole sandbox, such as 512M]:SIZE: '
      '--cpus[processors'\'' worth of time, such as 1.5]:NUMBER: '
      '--pids[processes and threads at once]:NUMBER: '
      '--disk[bytes that /workspace and /tmp may hold]:SIZE: '
      '*--accept[go on where the provider lacks this protection]:CAPABILITY: '
      '*--env[set a variable; NAME alone takes its value here]:NAME[=VALUE]: '
      '*-e[set a variable; NAME alone takes its value here]:NAME[=VALUE]: '
      '*--env-file[set variables from lines NAME=VALUE; --env wins]:FILE:_files'
      '--workdir[start in this folder inside]:DIR:_files -/'
      '--user[be this user inside]:NAME: '
      '--ttl[life of the sandbox; 1h unless said]:TIME: '
      '*--port[a port that will be reached]:NUMBER: '
      '*--metadata[kept with the sandbox and shown, not interpreted]:NAME=VALUE: '
      '*:argument:_files') ;;
    'sandbox list') own=(
      '*:argument:_files') ;;
    'sandbox info') own=(
      '*:argument:_files') ;;
    'sandbox kill') own=(
      '--all[kill every sandbox, after asking]'
      '*:argument:_files') ;;
    'sandbox prune') own=(
      '*:argument:_files') ;;
    'sandbox connect') own=(
      '--ttl[let it live this long from now]:TIME: '
      '*:argument:_files') ;;
    'sandbox extend') own=(
      '*:argument:_files') ;;
    'sandbox pause') own=(
      '*:argument:_files') ;;
    'sandbox resume') own=(
      '*:argument:_files') ;;
    'sandbox exec') own=(
      '--command[a string for /bin/sh -c, in place of ARGV]:STRING: '
      '-c[a string for /bin/sh -c, in place of ARGV]:STRING: '
      '--background[print the command'\''s id and do not wait]'
      '-d[print the command'\''s id and do not wait]'
      '*--env[set a variable; NAME alone takes its value here]:NAME[=VALUE]: '
      '*-e[set a variable; NAME alone takes its value here]:NAME[=VALUE]: '
      '*--env-file[set variables from lines NAME=VALUE; --env wins]:FILE:_files'
      '--workdir[start in this folder inside]:DIR:_files -/'
      '--user[be this user inside]:NAME: '
      '--timeout[kill it and all it started after TIME, like 30s]:TIME: '
      '--interactive[give standard input to the command]'
      '-i[give standard input to the command]'
      '--tty[run the command on a terminal]'
      '-t[run the command on a terminal]'
      '*:argument:_files') ;;
    'sandbox attach') own=(
      '*:argument:_files') ;;
    'sandbox shell') own=(
      '*--env[set a variable; NAME alone takes its value here]:NAME[=VALUE]: '
      '*-e[set a variable; NAME alone takes its value here]:NAME[=VALUE]: '
      '*--env-file[set variables from lines NAME=VALUE; --env wins]:FILE:_files'
      '--workdir[start in this folder inside]:DIR:_files -/'
      '--user[be this user inside]:NAME: '
      '*:argument:_files') ;;
    'sandbox upload') own=(
      '--mode[permission bits inside; LOCAL'\''s unless said]:OCTAL: '
      '--parents[make missing folders]'
      '-p[make missing folders]'
      '--timeout[give up after TIME; 1h unless said]:TIME: '
      '*:argument:_files') ;;
    'sandbox download') own=(
      '--timeout[give up after TIME; 1h unless said]:TIME: '
      '*:argument:_files') ;;
    'sandbox ls') own=(
      '--depth[levels of folders to go down; 1 unless said]:NUMBER: '
      '--timeout[give up after TIME; 1h unless said]:TIME: '
      '*:argument:_files') ;;
    'sandbox metrics') own=(
      '*:argument:_files') ;;
    'sandbox ps') own=(
      '*:argument:_files') ;;
    'sandbox signal') own=(
      '*:argument:_files') ;;
    'sandbox port') own=(
      '--listen[PORT, ADDRESS PORT or the path of a socket]:WHERE: '
      '--stdio[one connection, over standard input and output]'
      '*:argument:_files') ;;
    'template add') own=(
      '*:argument:_files') ;;
    'template list') own=(
      '*:argument:_files') ;;
    'template remove') own=(
      '*:argument:_files') ;;
    'profile list') own=(
      '*:argument:_files') ;;
    'profile show') own=(
      '*:argument:_files') ;;
    'token create') own=(
      '--tenant[whose sandboxes it is for (default)]:NAME: '
      '--rights[view, run (unless said), manage or operate]:RIGHT: '
      '--ttl[let it expire after this time]:TIME: '
      '*:argument:_files') ;;
    'token list') own=(
      '*:argument:_files') ;;
    'token revoke') own=(
      '*:argument:_files') ;;
    'provider list') own=(
      '*:argument:_files') ;;
    'provider info') own=(
      '*:argument:_files') ;;
    'provider enable') own=(
      '*:argument:_files') ;;
    'provider disable') own=(
      '*:argument:_files') ;;
    'provider default') own=(
      '*:argument:_files') ;;
    'provider doctor') own=(
      '--probe[make one call that needs its credentials]'
      '*:argument:_files') ;;
    'provider verify') own=(
      '*:argument:_files') ;;
    'provider install') own=(
      '--force[replace what is installed under its id]'
      '--sha256[the hash that the archive must have]:HEX: '
      '--ref[full commit id of a git source, or branch, tag]:REF: '
      '--subdir[the provider'\''s folder inside of the source]:DIR:_files -/'
      '*:argument:_files') ;;
    'provider upgrade') own=(
      '--sha256[the hash that the archive must have]:HEX: '
      '--ref[full commit id of a git source, or branch, tag]:REF: '
      '--subdir[the provider'\''s folder inside of the source]:DIR:_files -/'
      '*:argument:_files') ;;
    'provider uninstall') own=(
      '--force[also when it still has sandboxes]'
      '*:argument:_files') ;;
    'provider pack') own=(
      '--output[where the archive goes]:DIR:_files -/'
      '--sign[sign it with this secret key of minisign(1)]:KEY: '
      '*:argument:_files') ;;
    'seal') own=(
      '--output[write there instead of into the manifest]:FILE:_files'
      '--dir[where the module is; beside it unless said]:DIR:_files -/'
      '*:argument:_files') ;;
    'kit') own=(
      '--list[print the cases and what each proves]'
      '*--only[only cases whose id is like this]:GLOB: '
      '--seed[draw order and values from this number]:N: '
      '--in-process[without a worker, to debug; never conformant]'
      '--record[keep the report with the installed provider]'
      '--compare[name what changed between two reports]'
      '--junit[write a report for JUnit'\''s readers too]:FILE:_files'
      '*:argument:_files') ;;
    'serve') own=(
      '*--listen[serve HTTP there (127.0.0.1 8000), or none]:ADDRESS\:PORT: '
      '--log[lines of the log as text (the default) or json]:FORMAT: '
      '--socket[the unix socket]:PATH: '
      '--routes[print every path that is served, and exit]'
      '--anonymous[execute  open what runs Python to anybody]:WHAT: '
      '*--allow-host[a name that it is asked by]:NAME: '
      '--check[say whether the configuration is valid, and end]'
      '*:argument:_files') ;;
    'call') own=(
      '--timeout[give the call this long; 60s unless said]:TIME: '
      '--in-process[without a worker; only for shipped modules]'
      '*:argument:_files') ;;
    'contract') own=(
      '--markdown[print the reference of operations and records]'
      '*:argument:_files') ;;
    'explain') own=(
      '*:argument:_files') ;;
    'version') own=(
      '*:argument:_files') ;;
    'help') own=(
      '*:argument:_files') ;;
  esac
  _arguments -S $common $own
}
_coffer "$@"
