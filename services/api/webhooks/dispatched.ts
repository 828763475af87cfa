import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import type { Call } from '../call/operation.ts';
import { notFound } from '../call/refusal.ts';

/** Rows that the dispatcher makes from requests in the stream of an endpoint. */

/** How long a read waits for the dispatcher, milliseconds. */
const readWaitMs = 2_000;
/** Time for one look at the dispatcher's position, without a wait. */
export const lookMs = 250;

/** Whether the dispatcher has applied this event, after a wait. */
export const isDispatched = async (deps: Call['deps'], event: DecodedEvent, waitMs: number): Promise<boolean> => {
  const positions = new Map<string, bigint>();
  deps.store.note([event], positions);
  return deps.caughtUp(positions, waitMs, 'dispatcher');
};

interface Sought<Row> {
  readonly noun: string;
  readonly find: () => Promise<Row | null>;
  /** Whether this event of the endpoint requested the row. */
  readonly asks: (event: DecodedEvent) => boolean;
}

type Asking = Pick<Call<{ readonly id: string }>, 'deps' | 'params'>;

/**
 * The row, possibly an older state of it.
 * @throws Refusal 404; Unavailable when the endpoint's stream names the row and the dispatcher has not made it yet.
 */
export const findDispatched = async <Row>(
  { deps, params }: Asking,
  { noun, find, asks }: Sought<Row>,
  waitMs: number = readWaitMs,
): Promise<Row> => {
  const row = await find();
  if (row !== null) return row;
  const asked = (await deps.store.readStream(`webhook-${params.id}`)).find(asks);
  if (asked === undefined) throw notFound(noun);
  if (!(await isDispatched(deps, asked, waitMs))) throw behind();
  // The dispatcher has made the row meanwhile, or has deleted it after its time.
  const made = await find();
  if (made === null) throw notFound(noun);
  return made;
};

/** The same, not older than the caller's own writes. */
export const readDispatched = async <Row>(call: Asking & Pick<Call, 'behind'>, sought: Sought<Row>): Promise<Row> => {
  const late = await call.behind(['webhooks'], 'dispatcher');
  const row = await findDispatched(call, sought, late ? lookMs : readWaitMs);
  if (late) throw behind();
  return row;
};

const behind = (): Unavailable => new Unavailable('The dispatcher is behind.');
