import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Fault as TelegramFault } from '#test/support/networks/telegram/faults.ts';
import { faultText } from '#test/support/networks/telegram/faults.ts';
import type { Fault } from '#test/support/networks/x/index.ts';
import { problems } from '#test/support/networks/x/index.ts';
import type { Random } from '#test/support/seed.ts';
import { type LiveAccount, type LiveNetworks, type LivePlatform, livePlatforms } from './live-networks.ts';
import type { Load, Reported } from './load.ts';

/** Callers that post to live accounts while the networks lose answers, refuse storms of calls, and end tokens. */

export const liveActionNames = [
  'text',
  'thread',
  'video',
  'album',
  'commented',
  'lapse',
  'storm',
  'silence',
  'lost',
] as const;
export type LiveActionName = (typeof liveActionNames)[number];

type Json = Readonly<Record<string, unknown>>;

/** What a network may do to the call that makes a post. Words of a server in between, where the network has its own. */
const faults: readonly Fault['then'][] = [
  ...(['silent_before', 'silent_after', 'drop_before', 'drop_after'] as const),
  { answer: problems.over_capacity },
  { answerAfter: problems.internal },
  { lateMs: 400, answer: problems.bad_gateway },
];
const faultsOfTelegram = ['rate_limit', 'reject', 'timeout_before', 'timeout_after', 'error_after', 'late'] as const;

type Scripted = Exclude<LivePlatform, 'telegram'>;
const scripted: readonly Scripted[] = livePlatforms.filter((one) => one !== 'telegram');
/** A post of it is a video. */
const ofVideos: readonly LivePlatform[] = ['youtube', 'tiktok'];
/** A post of it has a picture at least. */
const ofPictures: readonly LivePlatform[] = ['pinterest', 'instagram'];
/** The calls that make a post, a comment with its own included. */
const creates: Readonly<Record<Scripted, readonly string[]>> = {
  x: ['POST /2/tweets'],
  pinterest: ['POST /v5/pins'],
  threads: ['POST /:id/threads_publish'],
  linkedin: ['POST /rest/posts', 'POST /rest/socialActions/:id/comments'],
  youtube: ['PUT last'],
  tiktok: ['PUT /video/'],
  facebook: ['POST /:id/feed', 'POST /:id/video_reels finish'],
  instagram: ['POST /:id/media_publish'],
  bluesky: ['POST com.atproto.repo.putRecord'],
};
/** Further calls that a silence meets: looks, and parts of files. */
const silenced: Readonly<Record<Scripted, readonly string[]>> = {
  x: ['GET /2/users/:id/tweets', 'POST /2/media/upload/:id/append'],
  pinterest: ['GET /v5/boards/:id/pins', 'POST /storage/'],
  threads: ['GET /:id/threads', 'POST /:id/threads'],
  linkedin: ['GET /rest/posts', 'PUT /dms-uploads/video'],
  youtube: ['PUT part', 'PUT probe', 'GET /youtube/v3/videos'],
  tiktok: ['POST /v2/post/publish/video/init/', 'POST /v2/post/publish/status/fetch/'],
  facebook: ['GET /:id/published_posts', 'POST /:id/photos', 'GET /:id'],
  instagram: ['GET /:id/media', 'POST /:id/media', 'GET /:id'],
  bluesky: ['GET com.atproto.repo.getRecord', 'POST com.atproto.repo.uploadBlob'],
};

/** Networks that take a post of this form. */
const takes = {
  text: ['x', 'telegram', 'threads', 'linkedin', 'facebook', 'bluesky'],
  // The service that takes videos of Bluesky is none of the real server's.
  video: livePlatforms.filter((one) => one !== 'bluesky'),
  album: ['x', 'telegram', 'pinterest', 'threads', 'linkedin', 'facebook', 'instagram', 'bluesky'],
  thread: ['x', 'threads'],
  /** Its access tokens are renewed. */
  lapse: ['x', 'linkedin', 'pinterest', 'youtube', 'tiktok', 'facebook', 'bluesky'],
} as const satisfies Readonly<Record<string, readonly LivePlatform[]>>;

const sends = ['sendMessage', 'sendVideo', 'sendMediaGroup'] as const;
/** Refused calls of a storm, on each network. */
const stormCalls = 6;

/** Networks that name no bucket name seconds, as a server before them does. */
const slow = (seconds: number): Fault['then'] => ({
  answer: { status: 429, body: {}, headers: { 'retry-after': String(seconds) } },
});

/**
 * X names whole seconds, from the call that it refuses: an instant in the past would mean a quarter of an hour.
 * @param ofApp all accounts of the app must wait
 */
const slower = (seconds: number, ofApp: boolean): Fault['then'] => ({
  get answer() {
    const reset = String(Math.ceil(Date.now() / 1_000) + seconds);
    const bucket = (name: string) => ({
      ...{ [`${name}-limit`]: '100', [`${name}-remaining`]: '0', [`${name}-reset`]: reset },
    });
    const headers = { ...bucket('x-rate-limit'), ...(ofApp ? bucket('x-app-limit-24hour') : {}) };
    return { ...problems.too_many_requests, headers };
  },
});

export interface LiveLoadOptions {
  readonly load: Load;
  readonly networks: LiveNetworks;
  readonly token: string;
  readonly clientId: string;
  readonly videoId: string;
  readonly imageIds: readonly string[];
  readonly random: Random;
}

export class LiveLoad {
  readonly reported: Reported[] = [];
  readonly violations: string[] = [];
  readonly #options: LiveLoadOptions;
  #count = 0;

  constructor(options: LiveLoadOptions) {
    this.#options = options;
  }

  /** @param on a network of it; absent: any that takes it */
  run(action: LiveActionName, on?: LivePlatform): Promise<void> {
    return this.#actions[action](on);
  }

  /** Concurrent callers until the signal aborts; each ends its action first. */
  async keepGoing(callers: number, signal: AbortSignal): Promise<void> {
    const { random } = this.#options;
    const one = async (): Promise<void> => {
      while (!signal.aborted) {
        await this.run(random.pick(liveActionNames));
        await delay(random.int(100, 900));
      }
    };
    await Promise.all(Array.from({ length: callers }, one));
  }

  /** Repeats acknowledged calls, under the same keys: each answer names the same post. */
  async repeat(most: number): Promise<void> {
    const { random, load, token } = this.#options;
    for (const { path, key, body, data } of random.shuffle(this.reported).slice(0, most)) {
      const again = await load.call('POST', path, body, key, token);
      if (again.status !== 200 || again.data.id !== data.id)
        this.violations.push(`${path} ${key}: was ${data.id}, is ${again.status} ${again.code} ${again.data.id}`);
    }
  }

  readonly #actions: Readonly<Record<LiveActionName, (on?: LivePlatform) => Promise<void>>> = {
    text: async (on) => void (await this.#post(this.#two('text', on), this.#text(true))),
    // Its network loses the answer, so that it is looked for.
    lost: async (on) => {
      const content = this.#text(false);
      const to = this.#one(on ?? this.#pick(scripted));
      this.#script(content, this.#options.random.pick(['silent_after', 'drop_after'] as const));
      await this.#post([to], content, this.#filesFor(to));
    },
    video: async (on) => void (await this.#post(this.#two('video', on), this.#text(false), [this.#options.videoId])),
    album: async (on) => {
      const { random, networks } = this.#options;
      const to = this.#two('album', on);
      // One that no album of this post meets would wait for one that a publisher is to die at.
      if (to.some(({ platform }) => platform === 'telegram') && random.int(0, 4) === 0)
        networks.telegram.arm('sendMediaGroup', { kind: 'partial', out: 1 });
      await this.#post(to, this.#text(false), this.#options.imageIds);
    },
    commented: async (on) => {
      const firstComment = this.#text(true);
      await this.#post(this.#two('text', on), this.#text(false), [], { firstComment });
    },
    // A token ends before the second part, sometimes for good: then its owner consents again, and the thread goes on.
    thread: async (on) => {
      const { random, networks } = this.#options;
      const to = this.#one(on ?? this.#pick(takes.thread));
      const segments = [1, 2, 3].map(() => ({ content: this.#text(false) }));
      const second = segments[1]?.content ?? '';
      // Nothing renews a token of Threads.
      const forGood = to.platform === 'threads' || random.int(0, 2) === 0;
      const way = random.int(0, 2);
      if (way === 0) this.#script(second, { run: () => networks.lapse(to, forGood), then: 'act' });
      if (way === 1) this.#script(second, random.pick(faults));
      const made = await this.#keyed(
        '/posts',
        this.#body([to], segments[0]?.content ?? '', [], {}, { thread: { segments } }),
      );
      const [target] = (made?.targets ?? []) as readonly { readonly id: string }[];
      if (target === undefined || way !== 0 || !forGood) return;
      // Only a pace: whoever renews the accounts does it within some seconds.
      await delay(6_000);
      await this.#keyed(`/post-targets/${target.id}/retry`, undefined);
    },
    // Two publishers find it, and one of them refreshes it.
    lapse: async (on) => {
      const to = this.#one(on ?? this.#pick(takes.lapse));
      this.#options.networks.lapse(to, false);
      await Promise.all([1, 2].map(() => this.#post([to], this.#text(false), this.#filesFor(to))));
    },
    storm: async (on) => {
      const { random, networks } = this.#options;
      const seconds = random.int(1, 2);
      networks.x.script({ route: 'POST /2/tweets', times: stormCalls, then: slower(seconds, random.int(0, 3) === 0) });
      for (const platform of this.#scripted.filter((one) => one !== 'x')) {
        const [route = ''] = creates[platform];
        networks.script(platform, { route, times: stormCalls, then: slow(seconds) });
      }
      const refused: TelegramFault = {
        ...{ kind: 'refuse', code: 429, description: `Too Many Requests: retry after ${seconds}` },
        parameters: { retry_after: seconds },
      };
      networks.telegram.arm('sendMessage', ...Array.from({ length: stormCalls }, () => refused));
      for (let posts = 0; posts < 4; posts += 1) await this.#post(this.#two('text', on), this.#text(false));
      const videos = ofVideos.map((platform) => this.#one(platform));
      await this.#post(videos, this.#text(false), [this.#options.videoId]);
    },
    // Nobody answers to anything, and some of it was taken.
    silence: async (on) => {
      const { random, networks } = this.#options;
      const then = random.pick(['silent_before', 'silent_after'] as const);
      for (const platform of this.#scripted)
        for (const route of [...creates[platform], ...silenced[platform]])
          networks.script(platform, { route, times: 2, then });
      for (const method of [...sends, 'getChat']) networks.telegram.arm(method, { kind: then });
      await this.#post(this.#two('text', on), this.#text(false));
      await this.#post(this.#two('video', on), this.#text(false), [this.#options.videoId]);
    },
  };

  /** @param says only one post has it, however its network writes it */
  #script(says: string, then: Fault['then']): void {
    for (const platform of this.#scripted)
      for (const route of creates[platform]) this.#options.networks.script(platform, { route, says, then });
  }

  /** What the network takes no post without. */
  #filesFor({ platform }: LiveAccount): readonly string[] {
    const { imageIds, videoId } = this.#options;
    if (ofVideos.includes(platform)) return [videoId];
    return ofPictures.includes(platform) ? imageIds.slice(0, 1) : [];
  }

  /** Those of this world. */
  get #scripted(): readonly Scripted[] {
    return scripted.filter((one) => this.#options.networks.has(one));
  }

  #pick(platforms: readonly LivePlatform[]): LivePlatform {
    const { random, networks } = this.#options;
    return random.pick(platforms.filter((one) => networks.has(one)));
  }

  #one(platform: LivePlatform): LiveAccount {
    return this.#options.random.pick(this.#options.networks.accounts.filter((one) => one.platform === platform));
  }

  /** On two networks that take the form. */
  #two(form: keyof typeof takes, on?: LivePlatform): readonly LiveAccount[] {
    const first = on ?? this.#pick(takes[form]);
    const second = this.#pick(takes[form].filter((one) => one !== first));
    return [this.#one(first), this.#one(second)];
  }

  /** No other text of the world is the same. */
  #text(mayFail: boolean): string {
    const { random } = this.#options;
    this.#count += 1;
    const own = `live ${this.#count} of ${random.seed}`;
    if (!mayFail || random.int(0, 1) === 0) return own;
    const content = `${own} ${faultText(random.pick(faultsOfTelegram), 700)}`;
    // LinkedIn writes the rest with signs before it.
    this.#script(own, random.pick(faults));
    return content;
  }

  #body(
    accounts: readonly LiveAccount[],
    content: string,
    mediaIds: readonly string[],
    overrides: Json = {},
    more: Json = {},
  ): Json {
    const { clientId, networks } = this.#options;
    const variants = accounts.map((to) => ({
      ...{ platform: to.platform, overrides: { ...overrides, ...networks.overridesOf(to) } },
      ...(mediaIds.length === 0 ? {} : { mediaIdsOverride: mediaIds }),
    }));
    const targets = { mode: 'selection', accountIds: accounts.map(({ id }) => id) };
    return { clientId, content, targets, variants, schedule: { type: 'now' }, ...more };
  }

  #post(
    accounts: readonly LiveAccount[],
    content: string,
    mediaIds: readonly string[] = [],
    overrides: Json = {},
  ): Promise<Json | null> {
    return this.#keyed('/posts', this.#body(accounts, content, mediaIds, overrides));
  }

  /** Null: refused, because something came first. */
  async #keyed(path: string, body: unknown): Promise<Json | null> {
    const { load, token } = this.#options;
    const key = randomUUID();
    const { status, data, code } = await load.call('POST', path, body, key, token);
    if (status === 200) {
      this.reported.push({ path, key, body, data, exact: false });
      return data;
    }
    if (code !== 'target_not_retryable' && code !== 'cadence_exceeded')
      this.violations.push(`POST ${path}: ${status} ${code} ${JSON.stringify(data)} ${JSON.stringify(body)}`);
    return null;
  }
}
