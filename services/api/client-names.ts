import { setTimeout as delay } from 'node:timers/promises';
import { EventStoreError } from '#contracts/ports/event-store.ts';
import { bearsName, type ClientCommand, type ClientState, client } from '#domain/client.ts';
import { type ClientNameCommand, type ClientNameState, clientname } from '#domain/clientname.ts';
import type { Decider } from '#domain/decider.ts';
import { clientNameIdOf } from '#domain/ids.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { CommandContext, DomainStore, Loaded, Positions } from '#runtime/eventing/domain-store.ts';
import { partitionKeyOf } from '#runtime/eventing/domain-store.ts';
import type { Call } from './operation.ts';

/**
 * Steps of the claim protocol, by which no two live clients of a workspace bear one name: claim the new name → append
 * to the client at the revision read *before* the claim → release the old name at the revision read before that append.
 *
 * A claim holds iff its owner is live and bears the name. One that does not, and is older than `lapseMs`, is broken: a
 * ClientNameClaimLapsed in the owner's stream makes its pending write lose, then the name is claimed anew. Every claim
 * appends, also of a name the client has claimed already, so whoever acted on the older claim loses in turn.
 */

/** Age at which a claim that its owner does not live up to may be broken, milliseconds. */
const lapseMs = 10_000;
/** Wait before a claim that is neither held nor old is looked at again, milliseconds. */
export const pollMs = 100;

export interface Claimant {
  readonly store: DomainStore;
  readonly context: CommandContext;
  readonly positions: Positions;
  /** Milliseconds since the epoch: a claim's age is told while waiting for it. */
  readonly clock: () => number;
  /** Resolves after so many milliseconds. */
  readonly wait: (ms: number) => Promise<void>;
}

export const isConflict = (error: unknown): boolean =>
  error instanceof EventStoreError && error.code === 'wrong_expected_revision';

/** Decides and appends at exactly the revision that was read. @throws EventStoreError on a conflict. */
const appendAt = async <State, Command, Event extends { readonly type: string; readonly data: unknown }>(
  { store, context, positions }: Claimant,
  decider: Decider<State, Command, Event>,
  id: string,
  command: Command,
  { state, revision }: Pick<Loaded<State>, 'state' | 'revision'>,
): Promise<readonly DecodedEvent[]> => {
  const decided = decider.decide(command, state);
  if (decided.length === 0) return [];
  const partitionKey = partitionKeyOf(decider.kind, id);
  return store.append(`${decider.kind}-${id}`, revision, decided, context, partitionKey, positions);
};

export const appendToClient = (
  by: Claimant,
  id: string,
  command: ClientCommand,
  loaded: Pick<Loaded<ClientState>, 'state' | 'revision'>,
): Promise<readonly DecodedEvent[]> => appendAt(by, client, id, command, loaded);

export type NameClaim = Loaded<ClientNameState>;

export const loadName = ({ store, context }: Claimant, name: string): Promise<NameClaim> =>
  store.load(clientname, clientNameIdOf(context.workspaceId, name));

const appendToName = (
  by: Claimant,
  name: string,
  command: ClientNameCommand,
  loaded: Pick<NameClaim, 'state' | 'revision'>,
): Promise<readonly DecodedEvent[]> =>
  appendAt(by, clientname, clientNameIdOf(by.context.workspaceId, name), command, loaded);

/** Who stands in the way of a claim, as of now. */
export type Holder =
  | { readonly kind: 'nobody' }
  /** A live client bears the name. */
  | { readonly kind: 'holds'; readonly clientId: string; readonly client: Loaded<ClientState> }
  /** It was claimed for a client that was never born: whoever comes next may give birth to it. */
  | { readonly kind: 'unborn'; readonly clientId: string; readonly client: Loaded<ClientState>; readonly old: boolean }
  /** Its owner lives and does not bear it: about to, or died on the way. */
  | {
      readonly kind: 'doubtful';
      readonly clientId: string;
      readonly client: Loaded<ClientState>;
      readonly old: boolean;
    };

export const holderOf = async (
  { store, clock }: Claimant,
  name: string,
  { state }: NameClaim,
  claimantId: string,
): Promise<Holder> => {
  if (state.status === 'free' || state.clientId === claimantId) return { kind: 'nobody' };
  const { clientId } = state;
  const owner = await store.load(client, clientId);
  const old = clock() - Date.parse(state.claimedAt) > lapseMs;
  if (bearsName(owner.state, name)) return { kind: 'holds', clientId, client: owner };
  return { kind: owner.state.status === 'none' ? 'unborn' : 'doubtful', clientId, client: owner, old };
};

/** Claims a name for a client that the holder does not keep it from. @throws EventStoreError when the claim moved. */
export const claimName = async (
  by: Claimant,
  name: string,
  clientId: string,
  holder: Holder,
  claim: NameClaim,
): Promise<readonly DecodedEvent[]> => {
  const other = holder.kind === 'unborn' || holder.kind === 'doubtful' ? holder.clientId : clientId;
  const evicts = other === clientId ? null : other;
  if (evicts !== null && holder.kind !== 'nobody' && holder.kind !== 'holds') await breakClaim(by, name, holder);
  const now = new Date(by.clock()).toISOString();
  return appendToName(by, name, { type: 'Claim', clientId, name, now, evicts }, claim);
};

/**
 * Breaks an old claim whose owner does not bear the name: the owner's pending write, if there is one, now loses.
 * If we die before the name is claimed anew the next caller breaks it again.
 * @throws EventStoreError when the owner moved meanwhile: look again.
 */
const breakClaim = (by: Claimant, name: string, holder: Extract<Holder, { kind: 'unborn' | 'doubtful' }>) =>
  appendToClient(by, holder.clientId, { type: 'LapseNameClaim', name }, holder.client);

/** Gives a name back as it was claimed then; whoever has claimed it since keeps it. */
export const release = async (
  by: Claimant,
  name: string,
  clientId: string,
  claim: Pick<NameClaim, 'state' | 'revision'>,
): Promise<void> => {
  try {
    await appendToName(by, name, { type: 'Release', clientId }, claim);
  } catch (error) {
    if (!isConflict(error)) throw error;
  }
};

export const claimantOf = ({ deps, context, positions }: Pick<Call, 'deps' | 'context' | 'positions'>): Claimant => ({
  store: deps.store,
  context,
  positions,
  clock: deps.clock,
  wait: (ms) => delay(ms),
});
