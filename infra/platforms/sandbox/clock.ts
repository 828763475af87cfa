/** Milliseconds by which the network's clock is ahead of that of the workspace. @param workspace an SQL expression */
export const offsetOf = (workspace: string): string =>
  `((select offset_ms from sandbox.clock)
    + coalesce((select w.offset_ms from sandbox.workspace_clocks w where w.workspace_id = ${workspace}), 0))`;

/** Milliseconds by which the workspace's own clock is ahead of real time. @param workspace an SQL expression */
const aheadOf = (workspace: string): string =>
  `coalesce((select c.ahead_ms from ops.sandbox_clocks c where c.workspace_id = (${workspace})::text::uuid), 0)`;

/** Time as the workspace has it: what it posts is visible from then on. @param workspace an SQL expression */
export const workspaceNow = (workspace: string): string =>
  `(clock_timestamp() + ${aheadOf(workspace)} * interval '1 millisecond')`;

/** The network's time for this workspace. @param workspace an SQL expression */
export const networkNow = (workspace: string): string =>
  `(clock_timestamp() + (${offsetOf(workspace)} + ${aheadOf(workspace)}) * interval '1 millisecond')`;
