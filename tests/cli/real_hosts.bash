# A Slurm of our own (munged, slurmctld, slurmd: one node with two made-up GPUs) and an sshd of our own, below $work, on
# free ports. Each skips its test, with the reason, where its packages or rights are missing. end_hosts stops them.

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
started=()
in_background() { # LOG COMMAND...
    "${@:2}" >"$1" 2>&1 </dev/null 3>&- &
    started+=("$!")
}
end_hosts() {
    local pid
    for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${started[@]}"; do wait "$pid" 2>/dev/null || true; done
    started=()
}

start_slurm() {
    local name node
    for name in munged slurmctld slurmd sbatch; do
        PATH=$PATH:/usr/sbin command -v "$name" >/dev/null ||
            skip "no $name (Debian: munge, slurmctld, slurmd, slurm-client)"
    done
    [ "$(id -u)" -eq 0 ] || skip "slurmd starts jobs as root alone"
    PATH=$PATH:/usr/sbin
    slurm=$(mktemp -d /tmp/slurm.XXXXXX) # a socket's path has at most 107 bytes
    chmod 755 "$slurm"
    mkdir "$slurm"/{state,spool,munge}
    chmod 711 "$slurm/munge"
    dd if=/dev/urandom of="$slurm/key" bs=1 count=1024 2>/dev/null
    chmod 600 "$slurm/key"
    { mknod "$slurm/gpu0" c 1 3 && mknod "$slurm/gpu1" c 1 5; } 2>/dev/null || # as /dev/null and /dev/zero
        skip "no right to make device files, which Slurm wants for GPUs"
    node=$(hostname -s)
    cat >"$slurm/slurm.conf" <<END
ClusterName=test
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$slurm/munge/socket
CredType=cred/munge
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/slurmd.pid
SlurmctldLogFile=$slurm/slurmctld.log
SlurmdLogFile=$slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
GresTypes=gpu
NodeName=$node NodeAddr=127.0.0.1 CPUs=16 RealMemory=1000 Gres=gpu:2 State=UNKNOWN
PartitionName=all Nodes=$node Default=YES MaxTime=INFINITE State=UP
END
    printf 'NodeName=%s Name=gpu File=%s/gpu[0-1]\n' "$node" "$slurm" >"$slurm/gres.conf"
    echo 'CgroupPlugin=cgroup/v1' >"$slurm/cgroup.conf"
    export SLURM_CONF=$slurm/slurm.conf
    in_background "$slurm/munged.said" munged --foreground --force --key-file="$slurm/key" \
        --socket="$slurm/munge/socket" --pid-file="$slurm/munge/pid" --log-file="$slurm/munged.log" \
        --seed-file="$slurm/seed"
    eventually test -S "$slurm/munge/socket"
    in_background "$slurm/slurmctld.said" slurmctld -D -f "$SLURM_CONF"
    in_background "$slurm/slurmd.said" slurmd -D -f "$SLURM_CONF" -N "$node"
    eventually node_is_idle || { tail -n 20 "$slurm"/*.log; return 1; }
}
node_is_idle() { sinfo -h -o %t 2>/dev/null | grep -qx idle; }

start_sshd() {
    local name
    for name in sshd ssh ssh-keygen rsync parallel; do
        PATH=$PATH:/usr/sbin command -v "$name" >/dev/null || skip "no $name (Debian: openssh-server, rsync, parallel)"
    done
    PATH=$PATH:/usr/sbin
    ssh_port=$(free_port)
    mkdir -m 700 "$work/ssh"
    ssh-keygen -q -t ed25519 -N '' -f "$work/ssh/host"
    ssh-keygen -q -t ed25519 -N '' -f "$work/ssh/user"
    cp "$work/ssh/user.pub" "$work/ssh/authorized"
    [ "$(id -u)" -ne 0 ] || mkdir -p /run/sshd
    cat >"$work/ssh/config" <<END
Port $ssh_port
ListenAddress 127.0.0.1
HostKey $work/ssh/host
AuthorizedKeysFile $work/ssh/authorized
PidFile $work/ssh/pid
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
PermitUserEnvironment no
END
    in_background "$work/ssh/said" "$(PATH=$PATH:/usr/sbin command -v sshd)" -D -e -f "$work/ssh/config"
    # What a line of --sshloginfile holds: a whole ssh command.
    ssh_line="ssh -p $ssh_port -i $work/ssh/user -o BatchMode=yes -o StrictHostKeyChecking=no"
    ssh_line+=" -o UserKnownHostsFile=$work/ssh/known -o LogLevel=ERROR 127.0.0.1"
    eventually $ssh_line true
}
