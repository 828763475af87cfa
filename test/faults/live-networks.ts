/** The strict networks of a fault world, in its own process: they outlive ours, and their ledgers say what was made. */
import { randomBytes } from 'node:crypto';
import type { CredentialStore, NewCredential } from '#contracts/ports/credentials.ts';
import { account } from '#domain/account.ts';
import { accountIdOf } from '#domain/ids.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { contextOf, type Operator } from '#services/workflows/provision.ts';
import { TelegramSimulator } from '#test/support/networks/telegram/simulator.ts';
import type { Bot, Chat } from '#test/support/networks/telegram/state.ts';
import { type Fault, type Person, startX, type XNetwork } from '#test/support/networks/x/index.ts';
import { liveBluesky } from './live-bluesky.ts';
import {
  type Front,
  type LiveLinkedIn,
  type LiveNetwork,
  liveFacebook,
  liveInstagram,
  liveLinkedIn,
  livePinterest,
  liveThreads,
  liveTikTok,
  liveYouTube,
  type MadePost,
  startFront,
} from './live-kit.ts';

export const livePlatforms = [
  'x',
  'telegram',
  'pinterest',
  'threads',
  'linkedin',
  'youtube',
  'tiktok',
  'facebook',
  'instagram',
  'bluesky',
] as const;
export type LivePlatform = (typeof livePlatforms)[number];

interface Others {
  readonly pinterest: LiveNetwork;
  readonly threads: LiveNetwork;
  readonly linkedin: LiveLinkedIn;
  readonly youtube: LiveNetwork;
  readonly tiktok: LiveNetwork;
  readonly facebook: LiveNetwork;
  /** Of a world with all ten. */
  readonly instagram?: LiveNetwork;
  readonly bluesky?: LiveNetwork;
}

export interface LiveAccount {
  readonly id: string;
  readonly platform: LivePlatform;
  /** On the network. */
  readonly externalId: string;
}

export interface LivePost extends MadePost {
  readonly platform: LivePlatform;
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
  readonly others: Others;
  readonly #front: Front;
  readonly #people = new Map<string, Person>();
  readonly #chats = new Map<string, { readonly bot: Bot; readonly chat: Chat }>();

  /** @param all ten networks: Instagram too, and the real server of Bluesky. @throws MissingTool where that cannot be installed */
  static async open({ all = false }: { readonly all?: boolean } = {}): Promise<LiveNetworks> {
    // Limits are scripted here: a quarter of an hour is longer than a run.
    const x = await startX({ limits: { person: {} }, processing: quick });
    const others = {
      ...{ pinterest: await livePinterest(), threads: await liveThreads(), linkedin: await liveLinkedIn() },
      ...{ youtube: await liveYouTube(), tiktok: await liveTikTok(), facebook: await liveFacebook() },
      ...(all ? { instagram: await liveInstagram(), bluesky: await liveBluesky() } : {}),
    };
    const networks: LiveNetworks = new LiveNetworks({
      ...{ x, others, telegram: await TelegramSimulator.start() },
      front: await startFront(() => networks.api() ?? 'http://127.0.0.1:1'),
    });
    return networks;
  }

  /** Where the api listens now; null: it is down. */
  api: () => string | null = () => null;

  private constructor(made: {
    readonly x: XNetwork;
    readonly telegram: TelegramSimulator;
    readonly others: Others;
    readonly front: Front;
  }) {
    this.x = made.x;
    this.telegram = made.telegram;
    this.others = made.others;
    this.#front = made.front;
  }

  get hosts(): readonly string[] {
    const all = this.#kit.flatMap(([, { origin, others = [] }]) => [origin, ...others]);
    return [this.x.origin, this.telegram.origin, ...all].map((one) => new URL(one).host);
  }

  get #kit(): readonly (readonly [keyof Others, LiveNetwork])[] {
    return Object.entries(this.others) as [keyof Others, LiveNetwork][];
  }

  #of(platform: keyof Others): LiveNetwork {
    const found = this.others[platform];
    if (found === undefined) throw new Error(`${platform} is not in this world`);
    return found;
  }

  /** Whether the network is in this world. */
  has(platform: LivePlatform): boolean {
    return platform === 'x' || platform === 'telegram' || this.others[platform] !== undefined;
  }

  /** What our processes know of them. */
  get env(): Readonly<Record<string, string>> {
    const { clientId, clientSecret } = this.x.state.app;
    return {
      ...{ X_API: this.x.origin, X_CLIENT_ID: clientId, X_CLIENT_SECRET: clientSecret ?? '' },
      TELEGRAM_API: this.telegram.origin,
      // Threads fetches files from the address of the api.
      BASE_URL: `${this.#front.origin}/v1`,
      ...Object.assign({}, ...this.#kit.map(([, { env }]) => env)),
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
      const others = await Promise.all(
        this.#kit.map(async ([platform, network]) => [platform, await network.account()] as const),
      );
      const all = [['x', person.id] as const, ['telegram', String(chat.id)] as const, ...others];
      for (const [platform, externalId] of all) {
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
    await credentials.keep(
      { accountId: id, workspaceId, clientId, platform },
      await this.#credential(platform, externalId),
    );
    const who = { clientId, platform, externalId, network: 'live' } as const;
    const profile = { username: null, displayName: null, avatarUrl: null, scopes: [], expiresAt: null, timezone: null };
    const command = { type: 'Connect', ...who, ...profile, inviteId: null } as const;
    await execute(operator.store, account, id, command, contextOf(operator, workspaceId));
  }

  async #credential(platform: LivePlatform, externalId: string): Promise<NewCredential> {
    if (platform !== 'x' && platform !== 'telegram') return this.#of(platform).credential(externalId);
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

  /** What each post of the account needs. */
  overridesOf({ platform, externalId }: LiveAccount): Readonly<Record<string, string>> {
    if (platform === 'x' || platform === 'telegram') return {};
    return this.#of(platform).overrides?.(externalId) ?? {};
  }

  script(platform: Exclude<LivePlatform, 'telegram'>, fault: Fault): void {
    if (platform === 'x') this.x.script(fault);
    else this.#of(platform).script(fault);
  }

  /** The access tokens of the account end now; a refresh gives new ones, unless `forGood`. Telegram's have no end. */
  lapse({ platform, externalId: personId }: LiveAccount, forGood: boolean): void {
    if (platform === 'telegram') return;
    if (platform !== 'x') {
      this.#of(platform).lapse(personId, forGood);
      return;
    }
    const { access, refresh } = this.x.state;
    for (const tokens of forGood ? [access, refresh] : [access])
      for (const [token, grant] of tokens) if (grant.personId === personId) tokens.delete(token);
  }

  /** No fault that waits for its call strikes any more. */
  calm(): void {
    this.x.state.faults.length = 0;
    this.telegram.armed.clear();
    for (const [, one] of this.#kit) one.calm();
  }

  /** Asks the networks outside of this process what they have. */
  async read(): Promise<void> {
    for (const [, one] of this.#kit) await one.read?.();
  }

  /** What the networks have made, the oldest first, as of the last `read`. */
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
    const ofOthers = this.#kit.flatMap(([platform, one]) =>
      one.posts().map((post): LivePost => ({ ...post, platform })),
    );
    return [...ofX, ...ofTelegram, ...ofOthers];
  }

  close(): void {
    this.x.close();
    this.telegram.close();
    this.#front.close();
    for (const [, one] of this.#kit) one.close();
  }
}

/** What a JPEG of 1,080 by 1,080 begins with, which is all that Pinterest looks at; then its name. */
export const picture = (name: string): Buffer =>
  Buffer.concat([Buffer.from('ffd8ffc0001108043804380300', 'hex'), Buffer.from(`a picture: ${name}`)]);

/** Bytes that no network looks into, of a length that X takes in three segments. */
export const longClip = (): Buffer => randomBytes(9_000_000);
