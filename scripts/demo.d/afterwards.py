"""What to type when the demo has left everything running."""

import os

import world
from fleet import sdk_python


def next_words(controller, provider, agentd, folder, name, box):
    programs = [each.program for each in (agentd, controller, provider)]
    print(f"""
It runs on, also when this terminal closes. Try:

  export PATH={os.environ['SANDFLEET_BIN']}:$PATH SANDFLEET_STATE={controller.state}
  sandfleet get sandboxes -o wide
  sandfleet pause {name} --wait
  sandfleet resume {name} --wait
  sandfleet describe {name}
  sandfleet events

Run what you like in a sandbox, with its bytes, signals and exit code as if it ran here; `sandfleet shell`
gives you a terminal in it:

  export SANDFLEET_SOCKET={agentd.socket} SANDFLEET_SANDBOX={name}
  sandfleet exec -- sh -c 'id; project/primes | tail -n 1'
  sandfleet ps

Files are resources; add, edit or remove one in {controller.manifests}, or:

  sandfleet delete hello --wait
  sandfleet apply -f {world.REPO}/examples/sandbox.yaml --wait

Any E2B SDK connects by a sandbox's id; the one that the demo used:

  export E2B_API_URL={provider.api_url} E2B_SANDBOX_URL={provider.data_url} E2B_API_KEY=$(cat {provider.key_file})
  {sdk_python()} -c 'from e2b import Sandbox; print(Sandbox.connect("{box}").commands.run("id; uname -n").stdout)'

Logs are {" ".join(str(each.log) for each in programs)}.
To end it, sandboxes and all:

  kill {" ".join(str(each.pid) for each in programs)}; tail --pid={provider.program.pid} -f /dev/null; rm -r {folder}
""")
