import { account } from '#domain/account.ts';
import { approval } from '#domain/approval.ts';
import { testTwinIdOf, uuidv5 } from '#domain/ids.ts';
import { invite } from '#domain/invite.ts';
import { target } from '#domain/post-target/target.ts';
import { teaminvite } from '#domain/teaminvite.ts';
import { webhook } from '#domain/webhook.ts';
import { workspace } from '#domain/workspace.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { idOf } from '#schemas/topics.ts';
import { contextOf, ensureTwin } from '#services/workflows/provision.ts';
import type { Admin } from './context.ts';
import { type EventLine, eventsFile, type FinalManifest, linesOf } from './move-folder.ts';

/**
 * What becomes of that which could not move as it is. Each is a command of its stream, behind the events that came with it; a repeat
 * finds it done.
 */

interface Became {
  readonly what: string;
  readonly count: number;
  readonly became: string;
}

const words = {
  account: ['accounts', 'reauth_required: the permissions stayed behind, their owners consent again'],
  target: [
    'targets in the middle of publishing',
    'outcome_unknown: their networks are asked once the account is connected',
  ],
  webhook: ['webhooks', 'sign with a new secret, GET /v1/webhooks/{id} shows its end; the former one has ended'],
  invite: ['links to connect accounts', 'revoked: make new ones'],
  teaminvite: ['links to join the team', 'revoked: make new ones'],
  link: ['links to approve', 'revoked: make new ones'],
  member: ['members behind whom a person stood', 'keep their keys and their role; nobody is signed in as them'],
  twin: ['sandbox twins', 'made anew and empty: the one of the origin had not been moved before'],
} as const;

type Kind = keyof typeof words;

const reason = 'The workspace was moved to another installation, and the permissions of networks stayed behind.';

export const settleMove = async (
  admin: Admin,
  folder: string,
  { workspaceId }: FinalManifest,
): Promise<readonly Became[]> => {
  const counts = new Map<Kind, number>();
  const count = (kind: Kind): void => void counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const settle = new Settle(admin, workspaceId);
  /** Targets of which an attempt began and no end is known. */
  const open = new Set<string>();
  for await (const line of linesOf<EventLine>(folder, eventsFile)) {
    admin.signal.throwIfAborted();
    if (line.type === 'MemberIdentified') count('member');
    if (line.type === 'TargetPublishStarted') open.add(idOf(line.stream));
    else if (endsAttempt.has(line.type)) open.delete(idOf(line.stream));
    const kind = await settle.of(line);
    if (kind !== null) count(kind);
  }
  for (const id of open) if (await settle.target(id)) count('target');
  if (await settle.twin()) count('twin');
  return [...counts].map(([kind, number]) => ({ what: words[kind][0], count: number, became: words[kind][1] }));
};

const endsAttempt: ReadonlySet<string> = new Set([
  ...['TargetPublished', 'TargetFailed', 'TargetOutcomeUnknown', 'TargetRateLimited', 'TargetPublishDeferred'],
]);

/** An import that died may have revoked it. */
const isOurs = ({ events }: { readonly events: readonly DecodedEvent[] }): boolean =>
  events.at(-1)?.metadata.actor.type === 'admin';

class Settle {
  readonly #admin: Admin;
  readonly #workspaceId: string;
  readonly #now: string;

  constructor(admin: Admin, workspaceId: string) {
    this.#admin = admin;
    this.#workspaceId = workspaceId;
    this.#now = new Date(admin.operator.clock()).toISOString();
  }

  get #context() {
    return contextOf(this.#admin.operator, this.#workspaceId);
  }

  /** What the line is settled as; null: there is nothing to settle. */
  async of({ stream, type, data, encoding }: EventLine): Promise<Kind | null> {
    const id = idOf(stream);
    switch (type) {
      case 'AccountConnected':
        return (await this.#account(id)) ? 'account' : null;
      case 'WebhookRegistered':
        return (await this.#webhook(id)) ? 'webhook' : null;
      case 'ConnectInviteCreated':
        return (await this.#invite(id)) ? 'invite' : null;
      case 'TeamInviteCreated':
        return (await this.#teaminvite(id)) ? 'teaminvite' : null;
      case 'ApprovalLinkCreated': {
        const { linkId } = JSON.parse(Buffer.from(data, encoding).toString('utf8')) as { readonly linkId: string };
        return (await this.#link(id, linkId)) ? 'link' : null;
      }
      default:
        return null;
    }
  }

  /** Accounts of the sandbox have no owner who could consent. */
  async #account(id: string): Promise<boolean> {
    const { store } = this.#admin;
    const loaded = await store.load(account, id);
    const { state } = loaded;
    if (state.status === 'none' || state.status === 'disconnected' || state.network === 'sandbox') return false;
    await execute(store, account, id, { type: 'RequireReauth', reason }, this.#context, { loaded });
    return true;
  }

  async #webhook(id: string): Promise<boolean> {
    const { store, secrets } = this.#admin;
    const loaded = await store.load(webhook, id);
    if (loaded.state.status !== 'live') return false;
    const commandId = uuidv5(id, `moved ${this.#workspaceId}`);
    const keyVersion = secrets.current;
    const command = { type: 'RotateSecret', commandId, now: this.#now, keyVersion, endsFormer: true } as const;
    await execute(store, webhook, id, command, { ...this.#context, commandId }, { loaded });
    return true;
  }

  async #invite(id: string): Promise<boolean> {
    const { store } = this.#admin;
    const loaded = await store.load(invite, id);
    const { state } = loaded;
    if (state.status !== 'open' || state.expiresAt <= this.#now) return state.status === 'revoked' && isOurs(loaded);
    await execute(store, invite, id, { type: 'Revoke', reason: 'moved' }, this.#context, { loaded });
    return true;
  }

  async #teaminvite(id: string): Promise<boolean> {
    const { store } = this.#admin;
    const loaded = await store.load(teaminvite, id);
    const { state } = loaded;
    if (state.status !== 'open' || state.expiresAt <= this.#now) return state.status === 'revoked' && isOurs(loaded);
    await execute(store, teaminvite, id, { type: 'Revoke' }, this.#context, { loaded });
    return true;
  }

  async #link(id: string, linkId: string): Promise<boolean> {
    const { store } = this.#admin;
    const loaded = await store.load(approval, id);
    const { state } = loaded;
    const link = state.status === 'none' ? undefined : state.links[linkId];
    if (state.status === 'none' || link === undefined || link.expiresAt <= this.#now) return false;
    if (link.isRevoked) return isOurs(loaded);
    const partitionKey = state.about.postId;
    await execute(store, approval, id, { type: 'RevokeLink', linkId }, this.#context, { loaded, partitionKey });
    return true;
  }

  /** The worker of the origin may have come to its call: what the network has is asked there. */
  async target(id: string): Promise<boolean> {
    const { store } = this.#admin;
    const loaded = await store.load(target, id);
    const { state } = loaded;
    if (state.status === 'outcome_unknown') return state.restored;
    if (state.status !== 'publishing') return false;
    const command = { type: 'RecordRestored', restoredAt: this.#now, reconcileAt: this.#now, evenLater: true } as const;
    const partitionKey = state.common.postId;
    await execute(store, target, id, command, this.#context, { loaded, partitionKey });
    return true;
  }

  /** Test keys act in the twin. */
  async twin(): Promise<boolean> {
    const { store, operator } = this.#admin;
    const { state } = await store.load(workspace, this.#workspaceId);
    if (state.status === 'none' || state.mode === 'test') return false;
    const twin = await store.load(workspace, testTwinIdOf(this.#workspaceId));
    if (twin.state.status !== 'none') return false;
    await ensureTwin(operator, this.#workspaceId);
    return true;
  }
}
