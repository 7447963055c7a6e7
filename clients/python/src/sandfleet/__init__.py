"""Work inside a Sandfleet sandbox, through agentd on this machine."""
