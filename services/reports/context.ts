import { type CommandContext, type Loaded, uuidv7 } from '#runtime/eventing/domain-store.ts';

/** What this process does to a report follows from the newest event it saw of it. */
export const serviceContext = (
  { events }: Pick<Loaded<unknown>, 'events'>,
  workspaceId: string,
  now: () => number,
): CommandContext => {
  const last = events.at(-1);
  const commandId = uuidv7();
  return {
    workspaceId,
    actor: { type: 'service', id: 'reports' },
    correlationId: last?.metadata.$correlationId ?? commandId,
    causationId: last?.id ?? commandId,
    commandId,
    now: new Date(now()).toISOString(),
  };
};
