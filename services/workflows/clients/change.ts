import { isConflict } from '#contracts/ports/event-store.ts';
import { type ClientCommand, type ClientState, client } from '#domain/client.ts';
import { Rejection } from '#domain/decider.ts';
import { normaliseName } from '#domain/ids.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { Loaded } from '#runtime/eventing/domain-store.ts';
import { requireRoom } from '#runtime/eventing/stream-room.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { ClientFields } from '#schemas/client.ts';
import { appendToClient, type Claimant, claimName, holderOf, loadName, pollMs, release } from './names.ts';

/** Refuses, by throwing, a client that the caller may not change or did not expect in this state. */
export type Guard = (loaded: Loaded<ClientState>) => void;

/** All events of the client after the change. */
type Changed = readonly DecodedEvent[];

/**
 * Changes a client; a new name is claimed first. If we die after the claim, the claim lapses; after the append, the next
 * claimant of the old name breaks its claim.
 */
export const changeClient = async (
  by: Claimant,
  id: string,
  changes: Partial<ClientFields>,
  guard: Guard,
): Promise<Changed> => {
  for (;;) {
    const before = await by.store.load(client, id);
    guard(before);
    if (client.decide({ type: 'Update', changes }, before.state).length === 0) return asBefore(by, before);
    // The guard runs before the claim, so that a refused rename leaves no claim. The append at the same revision keeps
    // the check valid.
    requireRoom(before.events);
    const { name } = changes;
    const renames =
      name !== undefined &&
      before.state.status === 'live' &&
      normaliseName(name) !== normaliseName(before.state.fields.name);
    try {
      if (!renames) return [...before.events, ...(await appendToClient(by, id, { type: 'Update', changes }, before))];
      if (await claimed(by, id, name)) return await leaveName(by, id, { type: 'Update', changes }, before);
      await by.wait(pollMs);
    } catch (error) {
      // A conflict on the claim or on the client starts over: a claim is never used twice.
      if (!isConflict(error)) throw error;
    }
  }
};

/** Archives a client and releases its name. An archived client stays as it is. */
export const archiveClient = async (by: Claimant, id: string, guard: Guard): Promise<Changed> => {
  for (;;) {
    const before = await by.store.load(client, id);
    guard(before);
    if (before.state.status === 'archived') return asBefore(by, before);
    try {
      return await leaveName(by, id, { type: 'Archive' }, before);
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }
};

/** An earlier call may have stored what this one asks for, and its answer may have been lost. */
const asBefore = ({ store, positions }: Claimant, { events }: Loaded<ClientState>): Changed => {
  store.note(events.slice(-1), positions);
  return events;
};

/** False while another client is being renamed. @throws Rejection `already_exists` when a live client has the name */
const claimed = async (by: Claimant, id: string, name: string): Promise<boolean> => {
  const claim = await loadName(by, name);
  const holder = await holderOf(by, name, claim, id);
  if (holder.kind === 'holds') {
    throw new Rejection('already_exists', 'Another live client of the workspace has this name.');
  }
  if ((holder.kind === 'doubtful' || holder.kind === 'uncreated') && !holder.old) return false;
  await claimName(by, name, id, holder, claim);
  faultPoint('client:after-claim');
  return true;
};

/** Appends a change after which the client no longer has its old name, then releases that name as it was claimed before. */
const leaveName = async (
  by: Claimant,
  id: string,
  command: ClientCommand,
  before: Loaded<ClientState>,
): Promise<Changed> => {
  const old = before.state.status === 'live' ? before.state.fields.name : null;
  const claim = old === null ? null : await loadName(by, old);
  const events = [...before.events, ...(await appendToClient(by, id, command, before))];
  faultPoint('client:after-append');
  if (old !== null && claim !== null) await release(by, old, id, claim);
  faultPoint('client:after-release');
  return events;
};
