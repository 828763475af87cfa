import { isConflict } from '#contracts/ports/event-store.ts';
import { bearsName, type ClientCommand, type ClientState, client } from '#domain/client.ts';
import { type ClientNameCommand, type ClientNameState, clientname } from '#domain/clientname.ts';
import type { Decider } from '#domain/decider.ts';
import { clientNameIdOf } from '#domain/ids.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { CommandContext, DomainStore, Loaded, Positions } from '#runtime/eventing/domain-store.ts';
import { partitionKeyOf } from '#runtime/eventing/domain-store.ts';

/**
 * Steps of the claim protocol, which keeps two live clients of a workspace from having one name: claim the new name →
 * append to the client at the revision read *before* the claim → release the old name at the revision read before that
 * append.
 *
 * A claim holds while its owner is live and has the name. Another caller may break a claim that does not hold and is
 * older than `lapseMs`: it appends ClientNameClaimLapsed to the owner's stream, so that a pending write of the owner
 * conflicts, and claims the name itself. Every claim appends an event, also a second claim of the same client, so that
 * a caller who acts on the older claim conflicts too.
 */

/** Age from which a claim that does not hold may be broken, milliseconds. */
const lapseMs = 10_000;
/** Wait before the caller reads a claim again that neither holds nor is old, milliseconds. */
export const pollMs = 100;

export interface Claimant {
  readonly store: DomainStore;
  readonly context: CommandContext;
  readonly positions: Positions;
  /** Milliseconds since the epoch. Not the instant of the command: a claim grows older while its claimant waits. */
  readonly clock: () => number;
  /** Resolves after so many milliseconds. */
  readonly wait: (ms: number) => Promise<void>;
}

/** Decides and appends at exactly the revision that was read. @throws EventStoreError on a conflict. */
export const appendAt = async <State, Command, Event extends { readonly type: string; readonly data: unknown }>(
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

/** The present owner of a name, as far as another claimant must respect it. */
export type Holder =
  /** The name is free, or the claimant's own client has claimed it. */
  | { readonly kind: 'free' }
  /** A live client has the name. */
  | { readonly kind: 'holds'; readonly clientId: string; readonly client: Loaded<ClientState> }
  /** The name was claimed for a client that was never created: the next claimant may create that client. */
  | {
      readonly kind: 'uncreated';
      readonly clientId: string;
      readonly client: Loaded<ClientState>;
      readonly old: boolean;
    }
  /** The owner is live and has another name: its rename is under way, or the caller that renames it has crashed. */
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
  if (state.status === 'free' || state.clientId === claimantId) return { kind: 'free' };
  const { clientId } = state;
  const owner = await store.load(client, clientId);
  const old = clock() - Date.parse(state.claimedAt) > lapseMs;
  if (bearsName(owner.state, name)) return { kind: 'holds', clientId, client: owner };
  return { kind: owner.state.status === 'none' ? 'uncreated' : 'doubtful', clientId, client: owner, old };
};

/** Claims a name; breaks the claim of another owner first. @throws EventStoreError when the claim changed meanwhile */
export const claimName = async (
  by: Claimant,
  name: string,
  clientId: string,
  holder: Holder,
  claim: NameClaim,
): Promise<readonly DecodedEvent[]> => {
  const other = holder.kind === 'uncreated' || holder.kind === 'doubtful' ? holder.clientId : clientId;
  const evicts = other === clientId ? null : other;
  if (evicts !== null && holder.kind !== 'free' && holder.kind !== 'holds') await breakClaim(by, name, holder);
  const now = new Date(by.clock()).toISOString();
  return appendToName(by, name, { type: 'Claim', clientId, name, now, evicts }, claim);
};

/**
 * Breaks an old claim that does not hold: a pending write of its owner now conflicts. If we die before the name is
 * claimed again, the next caller breaks the claim again.
 * @throws EventStoreError when the owner's stream changed meanwhile: the caller reads the claim again.
 */
const breakClaim = (by: Claimant, name: string, holder: Extract<Holder, { kind: 'uncreated' | 'doubtful' }>) =>
  appendToClient(by, holder.clientId, { type: 'LapseNameClaim', name }, holder.client);

/** Releases a name at the revision of this claim; a client that has claimed it since keeps it. */
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
