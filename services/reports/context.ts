import type { CommandContext, Loaded } from '#runtime/eventing/domain-store.ts';
import { causedByNewest, serviceContext } from '#runtime/eventing/service-context.ts';

/** The context of a command on a report: its cause is the newest event that this process saw of the report. */
export const reportContext = (
  { events }: Pick<Loaded<unknown>, 'events'>,
  { reportId, workspaceId }: { readonly reportId: string; readonly workspaceId: string },
  now: () => number,
): CommandContext => serviceContext('reports', causedByNewest(events, workspaceId, reportId), now());
