# SPDX-License-Identifier: MIT
# Completion of the storm command for bash: commands, options, numbers of jobs, names of nodes.
# Nothing but bash itself is needed. Jobs and nodes are asked of the cluster; without one there are none.

__storm_commands='add alloc attach bench campaign cp demo doctor down drain exec grow help kill login model nodes policy ps reload remove replay reserve resume run
    show sim submit suspend undrain up version wait why work'

# Options of a command; those that take a value end in '='.
__storm_options() {
    local size='-n= --procs= -N= --nodes= --size= -w= --on= -x= --exclude= --need= --exclusive -t= --time= --name= --priority= --begin= --reservation= --after= --after-any= --after-ok= --after-not-ok='
    local program='--class= --map= --load= --dry-run -o= --output= -e= --error= -D= --chdir= --env= --export= --kill-on-bad-exit --requeue --mem= --bind='
    case $1 in
    run) echo "$size $program -l --label --stdin= --pty --debug= --ranks= --cores --detach --auto --copy --no-copy --with-libs --input= --fetch= --tree= --chunk= --slots= --fabric= -v --cluster=" ;;
    submit) echo "$size $program --array= --wait -v --verbose --cluster=" ;;
    alloc) echo "$size --cluster=" ;;
    up) echo '--local= --hosts= --min-nodes= --max-nodes= --connector= --connect-timeout= --user= --interface= --ports= --node-folder= --foreground --pes= --tree= --links= --policy= --quantum= --mpl= --confine= --system-cores= --orphan= --vacate= --hosts-each= --hosts-all= --fabric= --hook= --bandwidth= --attribs= --nodespec= --share= --cluster= -v --verbose' ;;
    cp) echo '--tree= --chunk= --slots= --send= --fabric= -v --verbose -q --quiet --json --cluster=' ;;
    exec) echo '-w= --on= -x= --exclude= -l= --user= -b --gather -N --no-label --json -q --quiet -S --status --stdin= --put= --get= -u= --timeout= -t= --connect-timeout= --shape= -f= --fanout= --at-once= --connector=' ;;
    work) echo '-f= --file= -0 --null -n= --workers= -j= --jobs= -t= --time= --retries= --keep-going --halt -k --keep-order --unordered --json --progress --joblog= --resume= --resume-failed= --need= -w= --on= -x= --exclude= --name= --dry-run --auto --cluster=' ;;
    down) echo '--keep-jobs --cluster=' ;;
    ps) echo '-a --all -l --long --json --pids --swf --scale= --cluster=' ;;
    replay) echo '--scale= --jobs= --begin= --fit --busy= --grace= --strict --dry-run --detach --json --cluster=' ;;
    show | why) echo '--json --cluster=' ;;
    nodes) echo '--need= -l --long --json --cluster=' ;;
    reload) echo '--attribs= --nodespec= --cluster=' ;;
    kill) echo '-s= --ranks= --cluster=' ;;
    login) echo '--connector= --command= --issue --cluster=' ;;
    drain) echo '--reason= --cluster=' ;;
    grow) echo '--need= --class= --ppn= --together= --cluster=' ;;
    reserve) echo '--from= --for= --name= --cancel= --json --cluster=' ;;
    policy) echo '--quantum= --mpl= --json --cluster=' ;;
    remove) echo '--now --cluster=' ;;
    wait) echo '-v --verbose --cluster=' ;;
    attach) echo '--debug --cluster=' ;;
    add | suspend | resume | undrain) echo '--cluster=' ;;
    version | doctor) echo '--json' ;;
    bench) echo '--nodes= --runs= --json --launchers= --image= --peers --svg= --jobs= --queued= --size= --tree= --chunk=
        --slots= --send= --source= --flat --breakdown --load= --timeline= --links --sim -w= --on= --counts= --ways= --put= --connector= --lambda= --at-once
        --workers= --steps= --sync= --seed= --out=' ;;
    model) echo '--network= --nodes= --image= --arity= --host= --exec= --timeslice= --table --figure --svg= --launcher
        --lambda= --json' ;;
    sim) echo '--policy= --procs= --strict --mpl= --quantum= --switch-cost= --reserve= --lublin= --seed= --load= --out= --json' ;;
    esac
    echo '--help'
}

# __storm_values KEY LISTING: values in what a listing prints as JSON: numbers, or texts without escapes.
# How storm is called and which cluster is meant comes from _storm.
__storm_values() {
    local key=$1
    command "$__storm_path" "$2" "${__storm_cluster[@]}" --json 2>/dev/null | grep -oE "\"$key\": *(\"[^\"\\\\]*\"|[0-9]+)" |
        sed -e 's/^[^:]*: *//' -e 's/"//g'
}

# The words after an option that takes a value.
__storm_value() {
    case $1 in
    -w | --on | -x | --exclude) compgen -W "$(__storm_values name nodes)" -- "$2" ;;
    -o | --output | -e | --error | --svg | -f | --file | --joblog) compgen -f -- "$2" ;;
    -D | --chdir) compgen -d -- "$2" ;;
    --reservation | --cancel) compgen -W "$(__storm_values name reserve)" -- "$2" ;;
    --stdin) compgen -W 'all none 0' -- "$2" ;;
    --debug) compgen -W 'gdb lldb valgrind' -- "$2"; compgen -c -- "$2" ;;
    --export) compgen -W "all none $(compgen -e)" -- "$2" ;;
    --env) compgen -S = -e -- "$2" ;;
    --confine) compgen -W 'auto cgroup namespace none' -- "$2" ;;
    --network) compgen -W 'qsnet 1gbe 10gbe 100gbe 400gbe ib-hdr ib-ndr' -- "$2" ;;
    --policy) compgen -W 'fcfs easy easy-sjbf conservative gang gang-backfill local' -- "$2"; compgen -f -- "$2" ;;
    --out) compgen -d -- "$2" ;;
    --shape) compgen -W 'adaptive binomial k-ary chain flat' -- "$2" ;;
    --launchers) compgen -W 'node process' -- "$2" ;;
    -s) compgen -W "$(compgen -A signal SIG | sed 's/^SIG//')" -- "$2" ;;
    --cluster) (cd "${STORM_HOME:-$HOME/.storm}" 2>/dev/null && compgen -d -- "$2") ;;
    esac
}

# The words of a command that are no options.
__storm_word() {
    case $1 in
    run | alloc | submit | exec | work) compgen -c -- "$2"; compgen -f -- "$2" ;;
    ps | show | why | wait | attach | grow | kill | suspend | resume)
        compgen -W "$(__storm_values id ps)" -- "$2" ;;
    policy) compgen -W 'fcfs easy easy-sjbf conservative gang gang-backfill local' -- "$2" ;;
    nodes | drain | undrain | remove | reserve) compgen -W "$(__storm_values name nodes)" -- "$2" ;;
    cp) compgen -f -- "$2"; compgen -S : -W "all $(__storm_values name nodes)" -- "$2" ;;
    sim | replay) compgen -f -- "$2" ;;
    help) compgen -W "$__storm_commands" -- "$2" ;;
    bench) compgen -W 'exec gang idle launch primitives throughput transfer wodi' -- "$2" ;;
    esac
}

_storm() {
    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]-} options i at expects=
    local __storm_path=${COMP_WORDS[0]}
    local -a __storm_cluster=()
    COMPREPLY=()
    [ "$word" != = ] || word=
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "$__storm_commands" -- "$word")
        return
    fi
    options=" $(__storm_options "$command" | tr '\n' ' ') "
    for ((i = 2; i < COMP_CWORD; i++)); do
        at=${COMP_WORDS[i]}
        if [ "$at" = = ]; then # --name=value is three words to bash
            continue
        elif [ -n "$expects" ]; then
            [ "$expects" != --cluster ] || __storm_cluster=(--cluster "$at")
            expects=
        elif [[ $at == -* && $options == *" $at= "* ]]; then
            expects=$at
        elif [[ $at != -* && $command =~ ^(run|submit|alloc|exec|work)$ ]]; then
            mapfile -t COMPREPLY < <(compgen -f -- "$word") # the program's own arguments
            return
        fi
    done
    if [ -n "$expects" ]; then
        mapfile -t COMPREPLY < <(__storm_value "$expects" "$word")
    elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "${options//= / }" -- "$word")
    else
        mapfile -t COMPREPLY < <(__storm_word "$command" "$word")
    fi
}

complete -o filenames -F _storm storm
