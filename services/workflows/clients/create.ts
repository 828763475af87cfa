import { isConflict } from '#contracts/ports/event-store.ts';
import { bearsName, type ClientState, client } from '#domain/client.ts';
import { birthOf, Rejection } from '#domain/decider.ts';
import { keyedIdOf } from '#domain/ids.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { Loaded } from '#runtime/eventing/domain-store.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { ClientFields } from '#schemas/client.ts';
import {
  appendToClient,
  type Claimant,
  claimName,
  holderOf,
  loadName,
  type NameClaim,
  pollMs,
  release,
} from './names.ts';

export interface CreatedClient {
  /** Events to render: those that the key created, or all events of a client that was there already. */
  readonly events: readonly DecodedEvent[];
  readonly replayed: boolean;
}

/** The events that this key created, or all events where another key was first. @throws Rejection for another request. */
const existing = ({ events }: Loaded<ClientState>, { store, context, positions }: Claimant): CreatedClient => {
  store.note(events, positions);
  const creation = birthOf(client, events)?.metadata;
  if (creation === undefined || creation.keyHmac !== context.keyHmac) return { events, replayed: false };
  if (creation.fingerprint !== context.fingerprint) {
    throw new Rejection('idempotency_key_reused', 'This Idempotency-Key was used with another request.');
  }
  return { events: events.filter((event) => event.metadata.commandId === creation.commandId), replayed: true };
};

/**
 * Claims the name, then creates the client. If we die in between, the next caller of the name creates the client under
 * the claimed id, and a repeat of the first call finds that client. A live client that has the name already is answered
 * as it is now.
 */
export const createNamedClient = async (by: Claimant, key: string, fields: ClientFields): Promise<CreatedClient> => {
  const { store, context } = by;
  const { name } = fields;
  const ownId = keyedIdOf(context.workspaceId, 'createClient', key);
  for (;;) {
    const own = await store.load(client, ownId);
    if (own.state.status !== 'none') return existing(own, by);
    const claim = await loadName(by, name);
    const holder = await holderOf(by, name, claim, ownId);
    if (holder.kind === 'holds') return existing(holder.client, by);
    if (holder.kind === 'doubtful' && !holder.old) {
      // Another caller is renaming a client: soon the rename is done, or old enough to be broken.
      await by.wait(pollMs);
      continue;
    }
    const id = holder.kind === 'uncreated' ? holder.clientId : ownId;
    const before = holder.kind === 'uncreated' ? holder.client : own;
    try {
      const claimed = await claimName(by, name, id, holder, claim);
      faultPoint('client:after-claim');
      const events = await create(by, id, fields, before, claim, claimed);
      if (events !== null) return { events, replayed: false };
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }
};

/** Null when another caller created the client under this id, or broke our claim: the caller starts over. */
const create = async (
  by: Claimant,
  id: string,
  fields: ClientFields,
  before: Loaded<ClientState>,
  replaced: NameClaim,
  claimed: readonly DecodedEvent[],
): Promise<readonly DecodedEvent[] | null> => {
  try {
    const events = await appendToClient(by, id, { type: 'Create', fields }, before);
    faultPoint('client:after-append');
    return events;
  } catch (error) {
    if (!isConflict(error)) throw error;
    const [mine] = claimed;
    const wasItsOwn = replaced.state.status === 'claimed' && replaced.state.clientId === id;
    const winner = await by.store.load(client, id);
    // An earlier claim of this client may have a pending write of its own: that claim is left to lapse.
    if (mine !== undefined && !wasItsOwn && !bearsName(winner.state, fields.name)) {
      const claimedAt = String(mine.data.claimedAt);
      await release(by, fields.name, id, {
        state: { status: 'claimed', clientId: id, claimedAt },
        revision: mine.revision,
      });
    }
    return null;
  }
};
