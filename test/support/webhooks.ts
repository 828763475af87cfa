/** A dispatcher in a world with the api, and the records that a sender would write of its attempts. */

import { startDispatcher } from '#projections/webhooks/dispatcher.ts';
import { ensureMint } from '#projections/webhooks/mint.ts';
import type { Attempt } from '#projections/webhooks/queries.ts';
import { noSender } from '#test/support/no-sender.ts';
import type { World } from './http.ts';

export interface Dispatching {
  /** Waits until everything that is stored now is dispatched. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

/** Without a sender: minted deliveries wait in the queue. */
export const dispatching = async (world: World): Promise<Dispatching> => {
  const { pool, log, eventStore, store, codec, logger } = world;
  await ensureMint(pool);
  const over = new AbortController();
  const { done } = startDispatcher({ pool, log, eventStore, store, codec, logger, handover: noSender }, over.signal);
  return {
    settled: () => world.settled('dispatcher'),
    stop: async () => {
      over.abort();
      await done;
    },
  };
};

/** A settled delivery, as a sender leaves it. */
export const settle = async (
  world: World,
  deliveryId: string,
  status: 'delivered' | 'failed',
  attempts: readonly Attempt[],
): Promise<void> => {
  await world.pool.query(
    `update ops.webhook_deliveries set status = $2, attempts = $3, updated_at = now(),
       delivered_at = case when $2 = 'delivered' then now() end
     where id = $1`,
    [deliveryId, status, JSON.stringify(attempts)],
  );
  await world.pool.query('delete from ops.webhook_queue where delivery_id = $1', [deliveryId]);
};
