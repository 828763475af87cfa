/** A process that makes one call over the Postgres event store, and prints its answer; a fault point may end it first. */

import { target } from '#domain/post-target/target.ts';
import { PostgresEventStore } from '#infra/postgres/event-store.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { withIdempotencyRecord } from '#runtime/eventing/idempotency.ts';
import { defaultPartitions } from '#schemas/topics.ts';
import { fanOut } from '#services/workflows/fan-out.ts';
import { commandContext, MemoryDataKeys } from '#test/support/domain.ts';

interface Order {
  readonly url: string;
  readonly call: 'fanOut' | 'reschedule';
  readonly postId: string;
  readonly targetId: string;
  readonly key: string;
  /** What this caller would decide, if nobody has. */
  readonly dueAt: string;
}

const { url, call, postId, targetId, key, dueAt } = JSON.parse(process.env.CALLER ?? '{}') as Order;
const events = await PostgresEventStore.open({ url });
try {
  const store = new DomainStore(events, new EventCodec(new MemoryDataKeys()), defaultPartitions);
  if (call === 'fanOut') {
    const { targets } = await fanOut(store, postId, commandContext());
    process.stdout.write(JSON.stringify(targets.size));
  } else {
    const answer = await withIdempotencyRecord({
      store,
      operation: 'reschedulePostTarget',
      key,
      fingerprint: 'f',
      context: commandContext(),
      accept: async () => ({ dueAt }),
      effects: async (decided, context) => {
        const { commandId } = context;
        const command = {
          type: 'Reschedule',
          now: '2026-01-01T00:00:00.000Z',
          commandId,
          ...decided,
          scheduledLocal: null,
          jitterSeconds: 0,
        } as const;
        return (await execute(store, target, targetId, command, context, { partitionKey: postId })).revision;
      },
    });
    process.stdout.write(JSON.stringify(answer));
  }
} finally {
  await events.close();
}
