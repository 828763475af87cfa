import { bearsName, type ClientState, client } from '#domain/client.ts';
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
  isConflict,
  loadName,
  type NameClaim,
  pollMs,
  release,
} from './client-names.ts';
import { Refusal } from './refusal.ts';

export interface CreatedClient {
  /** Events to render: those of the birth for its own key, all of them for a client that was there already. */
  readonly events: readonly DecodedEvent[];
  readonly replayed: boolean;
}

/** What a key's own birth wrote, or all there is where another key was first. @throws Refusal for another request. */
const existing = ({ events }: Loaded<ClientState>, { store, context, positions }: Claimant): CreatedClient => {
  store.note(events, positions);
  const born = events.find((event) => event.type === 'ClientCreated')?.metadata;
  if (born === undefined || born.keyHmac !== context.keyHmac) return { events, replayed: false };
  if (born.fingerprint !== context.fingerprint) {
    throw new Refusal('idempotency_key_reused', 'This Idempotency-Key was used with another request.');
  }
  return { events: events.filter((event) => event.metadata.commandId === born.commandId), replayed: true };
};

/**
 * Birth form under a claimed name. Claim → birth: if we die in between, the next caller of the name gives birth to the
 * claimed id, and the dead caller's repeat finds that client. A live client of the name is answered as it is now.
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
      // A rename on its way: it is done soon, or may be broken.
      await by.wait(pollMs);
      continue;
    }
    const id = holder.kind === 'unborn' ? holder.clientId : ownId;
    const before = holder.kind === 'unborn' ? holder.client : own;
    try {
      const claimed = await claimName(by, name, id, holder, claim);
      faultPoint('client:after-claim');
      const events = await born(by, id, fields, before, claim, claimed);
      if (events !== null) return { events, replayed: false };
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }
};

/** Null when somebody else was born under this id, or broke our claim: look again. */
const born = async (
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
    // A claim that was this client's before ours may have a write of its own pending: it is left to lapse.
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
