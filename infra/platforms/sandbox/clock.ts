/** Milliseconds by which the network's clock is ahead for this workspace. @param workspace an SQL expression */
export const offsetOf = (workspace: string): string =>
  `((select offset_ms from sandbox.clock)
    + coalesce((select w.offset_ms from sandbox.workspace_clocks w where w.workspace_id = ${workspace}), 0))`;

/** The network's time for this workspace. @param workspace an SQL expression */
export const networkNow = (workspace: string): string =>
  `(clock_timestamp() + ${offsetOf(workspace)} * interval '1 millisecond')`;
