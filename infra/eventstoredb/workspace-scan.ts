import { type EventStore, type ReadStart, type WorkspacePage, workspaceOf } from '#contracts/ports/event-store.ts';

/** How often a read that finds too little is repeated. */
const maxReads = 3;
/** Events of all workspaces that one call scans. */
const stretchEvents = 2_000;
const pageEvents = 500;
/** A page ends with the event that exceeds this: events may be half a megabyte each. */
export const workspacePageBytes = 8 * 1_024 * 1_024;

/**
 * A read that the server ended early looks like one that found less, so it is repeated before its result counts. Events
 * left out silently would be skipped for ever.
 */
export const repeatedRead = async <T>(
  read: () => Promise<readonly T[]>,
  isWhole: (found: readonly T[]) => boolean = (found) => found.length > 0,
): Promise<readonly T[]> => {
  let found = await read();
  for (let asked = 1; asked < maxReads && !isWhole(found); asked += 1) found = await read();
  return found;
};

/**
 * One page of a workspace's events, found by scanning all events. The end counts only when no repeated read finds more.
 */
export const scanWorkspace = async (
  store: Pick<EventStore, 'readAll'>,
  workspaceId: string,
  options: ReadStart & { readonly limit: number; readonly until?: bigint },
): Promise<WorkspacePage> => {
  const { limit, until } = options;
  const events: WorkspacePage['events'][number][] = [];
  let begin: ReadStart = options;
  let next = options.after ?? null;
  let bytes = 0;
  for (let looked = 0; looked < stretchEvents; looked += pageEvents) {
    const page = await repeatedRead(() => store.readAll({ ...begin, limit: pageEvents }));
    for (const event of page) {
      if (until !== undefined && event.position > until) return { events, next, isEnd: true };
      next = event.position;
      if (workspaceOf(event.metadata) !== workspaceId) continue;
      events.push(event);
      bytes += event.data.byteLength + event.metadata.byteLength;
      if (events.length >= limit || bytes > workspacePageBytes) return { events, next, isEnd: false };
    }
    if (page.length === 0) return { events, next, isEnd: true };
    begin = { after: next };
  }
  return { events, next, isEnd: false };
};
