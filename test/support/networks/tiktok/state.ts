import { createHmac, randomBytes } from 'node:crypto';
import type { Answer } from './answer.ts';

/** What the simulated TikTok has: people, consents, posts on their way and out, calls. */

export const levels = ['PUBLIC_TO_EVERYONE', 'MUTUAL_FOLLOW_FRIENDS', 'FOLLOWER_OF_CREATOR', 'SELF_ONLY'] as const;
export type Level = (typeof levels)[number];

export interface Person {
  readonly id: string;
  readonly username: string;
  readonly nickname: string;
  /** The owner may change it at any time. */
  isPrivate: boolean;
  noComment: boolean;
  noDuet: boolean;
  noStitch: boolean;
  maxSeconds: number;
  followers: number;
  /** Null: as many as the app may. */
  postsADay: number | null;
  isBanned: boolean;
}

export interface Access {
  readonly personId: string;
  readonly scopes: readonly string[];
  /** Of one consent. */
  readonly family: string;
  /** Milliseconds of the network's clock. */
  readonly until: number;
}

/** `post_info` of a call. */
export type Info = Readonly<Record<string, unknown>> & { readonly privacy_level: Level };

export interface Upload {
  readonly id: string;
  readonly token: string;
  readonly size: number;
  readonly chunk: number;
  readonly count: number;
  readonly until: number;
  /** Bytes that are there, in their order. */
  received: number;
  /** Bytes that came, repeats included. */
  arrived: number;
  parts: number;
}

export interface Post {
  readonly publishId: string;
  readonly personId: string;
  /** Header `x-test-tag` of the call that made it. */
  tag: string | null;
  readonly info: Info;
  readonly kind: 'video' | 'photo';
  readonly photos: readonly string[];
  /** Null: pictures. */
  readonly upload: Upload | null;
  /** When TikTok had all of it; null: it has not. */
  takenAt: number | null;
  /** What it ends with instead of being published. */
  failReason: string | null;
  /** Of the public, where there is one. */
  readonly postId: string;
  /** Milliseconds that TikTok looks at it, and then until the public sees it. */
  lookMs: number;
  readonly publicMs: number;
  isGone: boolean;
}

export interface CallEntry {
  readonly method: string;
  readonly path: string;
  readonly personId: string | null;
  readonly status: number;
}

/** What a call meets instead of the network's own answer. */
export interface Fault {
  /** `POST /v2/post/publish/video/init/`; `PUT /video/` is a part of a file. */
  readonly route: string;
  /** The call's address, body, or the text of its post has this; absent: each call. */
  readonly says?: string;
  /** Default 1. */
  readonly times?: number;
  readonly then:
    | { readonly answer: Answer }
    /** Not taken, and no answer (`silent`) or a closed connection (`drop`). */
    | 'silent_before'
    | 'drop_before'
    /** Taken, and then so. */
    | 'silent_after'
    | 'drop_after'
    | { readonly answerAfter: Answer }
    /** Answered so at once, and taken later. */
    | { readonly lateMs: number; readonly answer: Answer }
    /** `run` is called, and then so: `act` is the network's own answer; with `silent_after` it is called once it is taken. */
    | { readonly run: () => void; readonly then?: 'act' | 'silent_before' | 'silent_after' };
}

export interface TikTokOptions {
  readonly redirectUri?: string;
  /** Default true. */
  readonly isAudited?: boolean;
  /** Accounts for which the app may post in a day. Default: any number. */
  readonly activeCap?: number;
}

const dayMs = 86_400_000;

export class State {
  readonly app: { readonly clientKey: string; readonly clientSecret: string; readonly redirectUri: string };
  isAudited: boolean;
  readonly activeCap: number;
  /** Of the next posts. */
  lookMs = 0;
  publicMs = 0;
  /** A post whose text has the key is looked at so long, and ends so. */
  readonly marked = new Map<string, { readonly ms: number; readonly failReason: string | null }>();
  /** Beginnings of addresses that are proven to be the operator's. */
  readonly proven: string[] = [];
  /** Pictures that anybody can fetch, by their address: their type. */
  readonly web = new Map<string, string>();
  readonly people = new Map<string, Person>();
  readonly access = new Map<string, Access>();
  readonly refresh = new Map<string, Access>();
  readonly codes = new Map<string, Omit<Access, 'family'> & { readonly challenge: string | null }>();
  readonly posts: Post[] = [];
  readonly calls: CallEntry[] = [];
  readonly faults: (Fault & { left: number })[] = [];
  #ahead = 0;
  #next = 0n;

  constructor({ redirectUri, isAudited = true, activeCap = Number.POSITIVE_INFINITY }: TikTokOptions) {
    const uri = redirectUri ?? 'https://postline.test/connect/callback';
    this.app = { clientKey: 'aw1234567890', clientSecret: 'tiktok-app-secret', redirectUri: uri };
    this.isAudited = isAudited;
    this.activeCap = activeCap;
  }

  now(): number {
    return Date.now() + this.#ahead;
  }

  advance(ms: number): void {
    this.#ahead += ms;
  }

  /** Beyond 2^53. */
  id(): string {
    this.#next += 1n;
    return String(7_678_907_398_077_074_000n + this.#next);
  }

  token(kind: string): string {
    return `${kind}.${randomBytes(24).toString('base64url')}`;
  }

  /** Two hours, and 180 days: documents of November 2026. */
  grant(personId: string, scopes: readonly string[], family = this.token('family')) {
    const [accessToken, refreshToken] = [this.token('act'), this.token('rft')];
    this.access.set(accessToken, { personId, scopes, family, until: this.now() + 7_200_000 });
    this.refresh.set(refreshToken, { personId, scopes, family, until: this.now() + 180 * dayMs });
    return { accessToken, refreshToken };
  }

  endFamily(family: string): void {
    for (const tokens of [this.access, this.refresh]) {
      for (const [token, one] of tokens) if (one.family === family) tokens.delete(token);
    }
  }

  levelsOf({ isPrivate }: Person): readonly Level[] {
    return [isPrivate ? 'FOLLOWER_OF_CREATOR' : 'PUBLIC_TO_EVERYONE', 'MUTUAL_FOLLOW_FRIENDS', 'SELF_ONLY'];
  }

  add(personId: string, info: Info, more: Pick<Post, 'kind' | 'photos' | 'upload' | 'tag'>): Post {
    const words = `${info.title ?? ''} ${info.description ?? ''}`;
    const mark = [...this.marked].find(([key]) => words.includes(key))?.[1];
    const prefix = more.kind === 'video' ? 'v_pub_file~v2-1' : 'p_pub_url~v2';
    const post: Post = {
      ...{ publishId: `${prefix}.${this.id()}`, personId, info, ...more, postId: this.id() },
      ...{ takenAt: more.kind === 'photo' ? this.now() : null, failReason: mark?.failReason ?? null, isGone: false },
      ...{ lookMs: mark?.ms ?? this.lookMs, publicMs: this.publicMs },
    };
    this.posts.push(post);
    return post;
  }

  isOut({ takenAt, lookMs, failReason }: Post): boolean {
    return takenAt !== null && failReason === null && takenAt + lookMs <= this.now();
  }

  isPublic(post: Post): boolean {
    const { takenAt, lookMs, publicMs, info, isGone } = post;
    const at = (takenAt ?? Number.POSITIVE_INFINITY) + lookMs + publicMs;
    return this.isOut(post) && !isGone && info.privacy_level === 'PUBLIC_TO_EVERYONE' && at <= this.now();
  }

  /** Posts that TikTok took of a person in the last day. */
  postsOf(personId: string): number {
    return this.posts.filter((one) => one.personId === personId && (one.takenAt ?? 0) > this.now() - dayMs).length;
  }

  /** As TikTok calls the app. */
  webhook(event: string, personId: string, content: object) {
    const time = Math.floor(this.now() / 1_000);
    const { clientKey: client_key, clientSecret } = this.app;
    const body = JSON.stringify({
      ...{ client_key, event, create_time: time, user_openid: personId, content: JSON.stringify(content) },
    });
    const signature = createHmac('sha256', clientSecret).update(`${time}.${body}`).digest('hex');
    return { body, headers: { 'content-type': 'application/json', 'tiktok-signature': `t=${time},s=${signature}` } };
  }

  /** The fault that this call meets; it is spent. */
  met(route: string, said: string): Fault['then'] | null {
    const fault = this.faults.find(
      (one) => one.left > 0 && one.route === route && (one.says === undefined || said.includes(one.says)),
    );
    if (fault === undefined) return null;
    fault.left -= 1;
    return fault.then;
  }
}
