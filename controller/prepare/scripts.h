#pragma once

// What we do inside a sandbox as its root, by /bin/sh. The default user may run anything beside it:
// no step follows what that user can put in its way. Programs cost a millisecond each where the
// shell's own words cost nothing.
namespace controller {

// Makes ready for the executor that waits for its keys, and says whether it is the right one:
// "right", "other", or "unknown" where the image cannot tell. Nothing is made for another one.
//   $1  its pid: whose user is the default user
//   $2  the path that it was started by
//   $3  the digests that it may have, a space between them; empty: any will do
//   $4  the runtime folder, which becomes a real one, private to the default user
// Where there is cgroup2, it also gets a group of its own, which its user may divide: the one that
// it is in if it is alone there, since a move waits for the whole kernel (8 ms and more).
inline constexpr char kLayOut[] = R"sh(set -eu
pid=$1 file=$2 wanted=$3 folder=$4
refuse() {
  echo "$1" >&2
  exit 70
}

# What runs is what is judged, whatever has its path by now; but a container's root may not be let
# look. A digest that the image notes beside the file counts while the file is not the newer one.
runs=/proc/$pid/exe
[ -e "$runs" ] || runs=$file
note=$file.sha256
verdict=right
if [ -n "$wanted" ]; then
  if [ "$runs" -ef "$file" ] && [ -f "$note" ] && [ ! -L "$note" ] && [ -O "$note" ] &&
    [ ! "$file" -nt "$note" ]; then
    read -r digest _ <"$note" || :
  else
    digest=$(sha256sum "$runs" 2>/dev/null) || digest=unknown
  fi
  digest=${digest%% *}
  case " $wanted " in
    *" $digest "*) ;;
    *)
      verdict=other
      if [ "$digest" = unknown ] && [ "$runs" -ef "$file" ]; then verdict=unknown; fi
      ;;
  esac
fi
if [ $verdict = other ]; then
  echo other
  exit 0
fi

user= group= tracer=
while read -r name real effective saved _; do
  case $name in
    TracerPid:) tracer=$real ;;
    Uid:) [ "$real $saved" != "$effective $effective" ] || user=$real ;;
    Gid:) group=$real ;;
  esac
done <"/proc/$pid/status"
[ -n "$user" ] && [ -n "$group" ] || refuse "cannot tell who the default user is"
[ "$tracer" = 0 ] || refuse "process $tracer traces the executor and would read its keys"

if [ -L "$folder" ] || { [ -e "$folder" ] && [ ! -d "$folder" ]; }; then
  refuse "$folder is not a real folder"
fi
mount= path= own=
while read -r _ point type _; do
  if [ "$type" = cgroup2 ]; then
    mount=$point
    break
  fi
done </proc/mounts
is_alone_in() {
  while read -r each; do
    [ "$each" = "$pid" ] || return 1
  done <"$1/cgroup.procs"
}
if [ -n "$mount" ]; then
  while IFS=: read -r number _ within; do
    if [ "$number" = 0 ]; then path=${within%/}; fi
  done <"/proc/$pid/cgroup"
  [ -d "$mount$path" ] || path=
  own=$mount$path
  if [ -z "$path" ] || ! is_alone_in "$own"; then
    own=$own/sandfleet
    mkdir -p "$own" 2>/dev/null && { echo "$pid" >"$own/cgroup.procs"; } 2>/dev/null || own=
  fi
fi

if [ -d "$folder" ]; then
  chmod 0700 "$folder"
else
  mkdir -p -m 0700 "$folder"
fi
chown -h "$user:$group" "$folder" \
  ${own:+"$own" "$own/cgroup.procs" "$own/cgroup.subtree_control"} 2>/dev/null ||
  chown -h "$user:$group" "$folder"
echo $verdict
)sh";

// Puts an executor that was sent where it belongs, and removes what earlier ones left that did not
// arrive. Others may run it and not read it: whoever starts it can then look into it from no
// instant on, not even its first.
//   $1  where it was sent to
//   $2  its path
//   $3  its digest
inline constexpr char kPutInPlace[] = R"sh(set -eu
digest=$(sha256sum "$1" 2>/dev/null) || digest=
if [ -n "$digest" ] && [ "${digest%% *}" != "$3" ]; then
  rm -f "$1"
  echo "what arrived is not what was sent" >&2
  exit 71
fi
chmod 0711 "$1"
rm -f "$2.sha256"
mv -f "$1" "$2"
rm -f "${2%/*}"/.executor-* || :
[ -z "$digest" ] || echo "$3" >"$2.sha256"
)sh";

// Removes an executor that was sent and not put in place. $1: where it was sent to.
inline constexpr char kDiscard[] = R"sh(rm -f "$1"
)sh";

// Says which processor this is, as uname(1) names it; nothing where the image cannot tell.
inline constexpr char kMachine[] = R"sh(uname -m 2>/dev/null || :
)sh";

// Ends every executor of ours but envd. $1: its path.
inline constexpr char kEndAll[] = R"sh(for p in /proc/[0-9]*; do
  case "$(readlink "$p/exe" 2>/dev/null)" in
    "$1" | "$1 (deleted)") ;;
    *) continue ;;
  esac
  case "$(tr '\0' ' ' <"$p/cmdline" 2>/dev/null)" in
    *" --envd"*) continue ;;
  esac
  kill -9 "${p#/proc/}" 2>/dev/null || continue
  # Until its port and its lock are free: nothing of one that has ended runs.
  n=0
  while [ -e "$p/exe" ] && [ $n -lt 100 ]; do
    n=$((n + 1))
    sleep 0.01
  done
done
exit 0
)sh";

// The end of the executor's log, which belongs to the default user and is read as that user: it
// may be a link. $1: its path.
inline constexpr char kLastWords[] = R"sh(last=
while IFS= read -r line || [ -n "$line" ]; do last=$line; done <"$1"
printf '%s\n' "$last"
)sh";

}  // namespace controller
