/** The strict X and Telegram of a fault world, in its own process: they outlive ours, and their ledgers say what was made. */
import { randomBytes } from 'node:crypto';
import type { CredentialStore, NewCredential } from '#contracts/ports/credentials.ts';
import { account } from '#domain/account.ts';
import { accountIdOf } from '#domain/ids.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { contextOf, type Operator } from '#services/workflows/provision.ts';
import { TelegramSimulator } from '#test/support/networks/telegram/simulator.ts';
import type { Bot, Chat } from '#test/support/networks/telegram/state.ts';
import { type Person, startX, type XNetwork } from '#test/support/networks/x/index.ts';

export type LivePlatform = 'x' | 'telegram';

export interface LiveAccount {
  readonly id: string;
  readonly platform: LivePlatform;
  /** On the network. */
  readonly externalId: string;
}

/** One post that a network has; an album is one. */
export interface LivePost {
  readonly platform: LivePlatform;
  /** The account, by its id on the network. */
  readonly of: string;
  readonly externalId: string;
  /** As it was sent. */
  readonly text: string;
  /** External id; null: it replies to nothing. */
  readonly replyTo: string | null;
  readonly files: number;
}

/** Each has its own limits: a chat of Telegram takes 20 messages a minute. */
const perNetwork = 6;
const quick = [
  { state: 'pending', check_after_secs: 1 },
  { state: 'succeeded', progress_percent: 100 },
] as const;

type Owned = Readonly<Record<'workspaceId' | 'clientId', string>>;

export class LiveNetworks {
  readonly x: XNetwork;
  readonly telegram: TelegramSimulator;
  readonly accounts: LiveAccount[] = [];
  readonly #people = new Map<string, Person>();
  readonly #chats = new Map<string, { readonly bot: Bot; readonly chat: Chat }>();

  static async open(): Promise<LiveNetworks> {
    // Limits are scripted here: a quarter of an hour is longer than a run.
    const x = await startX({ limits: { person: {} }, processing: quick });
    return new LiveNetworks(x, await TelegramSimulator.start());
  }

  private constructor(x: XNetwork, telegram: TelegramSimulator) {
    this.x = x;
    this.telegram = telegram;
  }

  get hosts(): readonly string[] {
    return [this.x, this.telegram].map(({ origin }) => new URL(origin).host);
  }

  /** What our processes know of them. */
  get env(): Readonly<Record<string, string>> {
    const { clientId, clientSecret } = this.x.state.app;
    return {
      ...{ X_API: this.x.origin, X_CLIENT_ID: clientId, X_CLIENT_SECRET: clientSecret ?? '' },
      TELEGRAM_API: this.telegram.origin,
    };
  }

  /** Accounts of a client, connected as a consent leaves them. */
  async connect(operator: Operator, credentials: CredentialStore, owned: Owned): Promise<void> {
    const bot = this.telegram.bot();
    for (let count = 0; count < perNetwork; count += 1) {
      const person = this.x.person();
      const chat = this.telegram.chat();
      this.#people.set(person.id, person);
      this.#chats.set(String(chat.id), { bot, chat });
      for (const [platform, externalId] of [['x', person.id] as const, ['telegram', String(chat.id)] as const]) {
        const made = { id: accountIdOf(owned.clientId, platform, externalId), platform, externalId };
        this.accounts.push(made);
        await this.consent(operator, credentials, owned, made);
      }
    }
  }

  /** A new consent of the account's owner. */
  async consent(
    operator: Operator,
    credentials: CredentialStore,
    { workspaceId, clientId }: Owned,
    { id, platform, externalId }: LiveAccount,
  ): Promise<void> {
    await credentials.keep({ accountId: id, workspaceId, clientId, platform }, this.#credential(externalId));
    const who = { clientId, platform, externalId, network: 'live' } as const;
    const profile = { username: null, displayName: null, avatarUrl: null, scopes: [], expiresAt: null, timezone: null };
    const command = { type: 'Connect', ...who, ...profile, inviteId: null } as const;
    await execute(operator.store, account, id, command, contextOf(operator, workspaceId));
  }

  #credential(externalId: string): NewCredential {
    const channel = this.#chats.get(externalId);
    if (channel !== undefined) return { secret: { botToken: channel.bot.token, chatId: externalId }, expiresAt: null };
    const tokens = this.x.grant(this.#person(externalId));
    return { secret: { ...tokens, accessUntil: new Date(Date.now() + 7_200_000).toISOString() }, expiresAt: null };
  }

  #person(id: string): Person {
    const found = this.#people.get(id);
    if (found === undefined) throw new Error(`nobody is ${id} on X`);
    return found;
  }

  /** The access tokens of a person of X end now; a refresh gives new ones, unless `forGood`. */
  lapse(personId: string, forGood: boolean): void {
    const { access, refresh } = this.x.state;
    for (const tokens of forGood ? [access, refresh] : [access])
      for (const [token, grant] of tokens) if (grant.personId === personId) tokens.delete(token);
  }

  /** No fault that waits for its call strikes any more. */
  calm(): void {
    this.x.state.faults.length = 0;
    this.telegram.armed.clear();
  }

  /** What the networks have made, the oldest first. */
  posts(): readonly LivePost[] {
    const ofX = this.x.state.posts.map(
      ({ id, personId, sent, parent, mediaKeys }): LivePost => ({
        ...{ platform: 'x', of: personId, externalId: id, text: sent, replyTo: parent, files: mediaKeys.length },
      }),
    );
    const messages = Map.groupBy(
      this.telegram.ledger,
      ({ chatId, messageId, albumId }) => albumId ?? `${chatId}:${messageId}`,
    );
    const ofTelegram = [...messages.values()].map((all): LivePost => {
      const [{ chatId, messageId, method, replyTo } = {}] = all;
      return {
        ...{ platform: 'telegram', of: String(chatId), externalId: `${chatId}:${messageId}` },
        text: all.find(({ text }) => text !== '')?.text ?? '',
        replyTo: replyTo === null || replyTo === undefined ? null : `${chatId}:${replyTo}`,
        files: method === 'sendMessage' ? 0 : all.length,
      };
    });
    return [...ofX, ...ofTelegram];
  }

  close(): void {
    this.x.close();
    this.telegram.close();
  }
}

/** Bytes that no network looks into, of a length that X takes in three segments. */
export const longClip = (): Buffer => randomBytes(9_000_000);
