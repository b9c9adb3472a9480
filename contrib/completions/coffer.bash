# SPDX-License-Identifier: Apache-2.0
# Completion of coffer for bash; made by contrib/completions/generate.py.
_coffer ()
{
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
  local word path= count=0 skip= i common='--json --provider --host --yes --verbose --color --version --help -h'
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $skip ]]; then skip=; continue; fi
    case $word in
      --)
        if ((COMP_CWORD == i + 1)); then COMPREPLY=($(compgen -f -c -- "$cur"))
        else COMPREPLY=($(compgen -f -- "$cur")); fi
        return ;;
      --provider|--host|--color|--workspace|-w|--volume|-v|--profile|--template|--image|--net|--allow|--mem|--cpus|--pids|--disk|--accept|--env|-e|--env-file|--workdir|--user|--timeout|--python|--artifacts|--ttl|--port|--metadata|--command|-c|--mode|--depth|--listen|--tenant|--rights|--sha256|--ref|--subdir|--output|--sign|--dir|--only|--seed|--junit|--log|--socket|--anonymous|--allow-host) skip=1 ;;
      -*) ;;
      *) case $path in
           ''|sandbox|template|profile|token|provider) path=${path:+$path }$word ;;
           *) count=$((count + 1)) ;;
         esac ;;
    esac
  done
  case $prev in
    --env-file|--python|--output|--junit) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    --workspace|-w|--volume|-v|--workdir|--artifacts|--subdir|--output|--dir) COMPREPLY=($(compgen -d -- "$cur")); return ;;
    --color) COMPREPLY=($(compgen -W 'auto always never' -- "$cur")); return ;;
    --net) COMPREPLY=($(compgen -W 'none host allow' -- "$cur")); return ;;
    --profile) COMPREPLY=($(compgen -W "$(coffer profile list 2>/dev/null | awk 'NR > 1 { print $1 }')" -- "$cur")); return ;;
    --template) COMPREPLY=($(compgen -W "$(coffer template list 2>/dev/null | awk 'NR > 1 { print $1 }')" -- "$cur")); return ;;
    --provider) COMPREPLY=($(compgen -W "$(coffer provider list 2>/dev/null | awk 'NR > 1 { print $1 }')" -- "$cur")); return ;;
    --provider|--host|--color|--workspace|-w|--volume|-v|--profile|--template|--image|--net|--allow|--mem|--cpus|--pids|--disk|--accept|--env|-e|--env-file|--workdir|--user|--timeout|--python|--artifacts|--ttl|--port|--metadata|--command|-c|--mode|--depth|--listen|--tenant|--rights|--sha256|--ref|--subdir|--output|--sign|--dir|--only|--seed|--junit|--log|--socket|--anonymous|--allow-host) return ;;
  esac
  if [[ $cur != -* ]]; then
    case $path in
      '') COMPREPLY=($(compgen -W 'run sandbox template profile token provider seal kit serve call contract explain version help' -- "$cur")); return ;;
      sandbox) COMPREPLY=($(compgen -W 'create list info kill prune connect extend pause resume exec attach shell upload download ls metrics ps signal port' -- "$cur")); return ;;
      template) COMPREPLY=($(compgen -W 'add list remove' -- "$cur")); return ;;
      profile) COMPREPLY=($(compgen -W 'list show' -- "$cur")); return ;;
      token) COMPREPLY=($(compgen -W 'create list revoke' -- "$cur")); return ;;
      provider) COMPREPLY=($(compgen -W 'list info enable disable default doctor verify install upgrade uninstall pack' -- "$cur")); return ;;
      'profile show')
        if ((count == 0)); then
          COMPREPLY=($(compgen -W "$(coffer profile list 2>/dev/null | awk 'NR > 1 { print $1 }')" -- "$cur"))
          return
        fi ;;
      'template remove')
        if ((count == 0)); then
          COMPREPLY=($(compgen -W "$(coffer template list 2>/dev/null | awk 'NR > 1 { print $1 }')" -- "$cur"))
          return
        fi ;;
      'provider info'|'provider doctor'|'provider verify')
        if ((count == 0)); then
          COMPREPLY=($(compgen -W "$(coffer provider list 2>/dev/null | awk 'NR > 1 { print $1 }')" -- "$cur"))
          return
        fi ;;
      'explain')
        if ((count == 0)); then
          COMPREPLY=($(compgen -W "$(coffer explain 2>/dev/null | awk 'NR > 1 { print $1 }')" -- "$cur"))
          return
        fi ;;
      'sandbox info'|'sandbox kill'|'sandbox connect'|'sandbox extend'|'sandbox pause'|'sandbox resume'|'sandbox exec'|'sandbox attach'|'sandbox shell'|'sandbox upload'|'sandbox download'|'sandbox ls'|'sandbox metrics'|'sandbox ps'|'sandbox signal'|'sandbox port')
        if ((count == 0)); then
          COMPREPLY=($(compgen -W "$(coffer sandbox list 2>/dev/null | awk 'NR > 1 { print $1 }')" -- "$cur"))
          return
        fi ;;
      run) COMPREPLY=($(compgen -c -- "$cur")); return ;;
    esac
    COMPREPLY=($(compgen -f -- "$cur"))
    return
  fi
  case $path in
    'run') COMPREPLY=($(compgen -W "--workspace -w --volume -v --profile --template --image --net --allow --mem --cpus --pids --disk --accept --env -e --env-file --workdir --user --timeout --interactive -i --tty -t --python --artifacts $common" -- "$cur")) ;;
    'sandbox create') COMPREPLY=($(compgen -W "--workspace -w --volume -v --profile --template --image --net --allow --mem --cpus --pids --disk --accept --env -e --env-file --workdir --user --ttl --port --metadata $common" -- "$cur")) ;;
    'sandbox list') COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
    'sandbox info') COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
    'sandbox kill') COMPREPLY=($(compgen -W "--all $common" -- "$cur")) ;;
    'sandbox prune') COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
    'sandbox connect') COMPREPLY=($(compgen -W "--ttl $common" -- "$cur")) ;;
    'sandbox extend') COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
    'sandbox pause') COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
    'sandbox resume') COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
    'sandbox exec') COMPREPLY=($(compgen -W "--command -c --background -d --env -e --env-file --workdir --user --timeout --interactive -i --tty -t $common" -- "$cur")) ;;
    'sandbox attach') COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
    'sandbox shell') COMPREPLY=($(compgen -W "--env -e --env-file --workdir --user $common" -- "$cur")) ;;
    'sandbox upload') COMPREPLY=($(compgen -W "--mode --parents -p --timeout $common" -- "$cur")) ;;
    'sandbox download') COMPREPLY=($(compgen -W "--timeout $common" -- "$cur")) ;;
    'sandbox ls') COMPREPLY=($(compgen -W "--depth --timeout $common" -- "$cur")) ;;
    'sandbox metrics') COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
    'sandbox ps') COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
    'sandbox signal') COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
    'sandbox port') COMPREPLY=($(compgen -W "--listen --stdio $common" -- "$cur")) ;;
    'template add') COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
    'template list') COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
    'template remove') COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
    'profile list') COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
    'profile show') COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
    'token create') COMPREPLY=($(compgen -W "--tenant --rights --ttl $common" -- "$cur")) ;;
    'token list') COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
    'token revoke') COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
    'provider list') COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
    'provider info') COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
    'provider enable') COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
    'provider disable') COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
    'provider default') COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
    'provider doctor') COMPREPLY=($(compgen -W "--probe $common" -- "$cur")) ;;
    'provider verify') COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
    'provider install') COMPREPLY=($(compgen -W "--force --sha256 --ref --subdir $common" -- "$cur")) ;;
    'provider upgrade') COMPREPLY=($(compgen -W "--sha256 --ref --subdir $common" -- "$cur")) ;;
    'provider uninstall') COMPREPLY=($(compgen -W "--force $common" -- "$cur")) ;;
    'provider pack') COMPREPLY=($(compgen -W "--output --sign $common" -- "$cur")) ;;
    'seal') COMPREPLY=($(compgen -W "--output --dir $common" -- "$cur")) ;;
    'kit') COMPREPLY=($(compgen -W "--list --only --seed --in-process --record --compare --junit $common" -- "$cur")) ;;
    'serve') COMPREPLY=($(compgen -W "--listen --log --socket --routes --anonymous --allow-host --check $common" -- "$cur")) ;;
    'call') COMPREPLY=($(compgen -W "--timeout --in-process $common" -- "$cur")) ;;
    'contract') COMPREPLY=($(compgen -W "--markdown $common" -- "$cur")) ;;
    'explain') COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
    'version') COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
    'help') COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
    *) COMPREPLY=($(compgen -W "$common" -- "$cur")) ;;
  esac
}
complete -F _coffer coffer
