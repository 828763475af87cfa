import { randomUUID } from 'node:crypto';
import { eventStoreSuite } from '#contracts/ports/event-store.suite.ts';
import { MemoryEventLog, MemoryEventStore } from '#test/support/event-store/memory.ts';
import { suite } from '#test/support/suite.ts';

suite('memory event store', (t) => {
  eventStoreSuite(t, async () => {
    const log = new MemoryEventLog();
    const handles: MemoryEventStore[] = [];
    return {
      async open() {
        const handle = new MemoryEventStore(log);
        handles.push(handle);
        return handle;
      },
      async close() {
        await Promise.all(handles.map((handle) => handle.close()));
      },
      async dropReplyAfterCommit() {
        handles[0]?.failNext('reply_lost');
      },
      async systemEvent() {
        const bytes = new Uint8Array([123, 125]);
        const name = `$stats-${randomUUID()}`;
        log.append(name, 'none', [
          { id: randomUUID(), type: '$stats', data: bytes, metadata: bytes, partitionKey: name },
        ]);
      },
      // A subscription holds an index into the log, no events.
      buffered: () => 0,
    };
  }, ['dropReplyAfterCommit', 'systemEvent', 'buffered']);
});
