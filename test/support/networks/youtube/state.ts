import { randomBytes } from 'node:crypto';
import type { Answer } from './answer.ts';

/** What the simulated YouTube has: channels, consents, upload sessions, videos, comments, calls. */

export interface Channel {
  readonly id: string;
  /** Google's id of the person: of one login there may be several channels. */
  readonly person: string;
  readonly title: string;
  readonly handle: string;
  readonly country: string | null;
  subscribers: number;
  /** By telephone: it may set thumbnails. */
  isVerified: boolean;
}

export interface Access {
  readonly channelId: string;
  readonly scopes: readonly string[];
  /** Milliseconds of the network's clock; of a refresh token null: it does not end. */
  readonly until: number | null;
}

export type Resource = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

export interface Session {
  readonly key: string;
  readonly channelId: string;
  readonly resource: Resource;
  readonly total: number;
  readonly type: string;
  readonly tag: string | null;
  received: number;
  /** Of a part that is not the last one. */
  partBytes: number | null;
  videoId: string | null;
}

export interface Video {
  readonly id: string;
  readonly channelId: string;
  snippet: Readonly<Record<string, unknown>>;
  status: Readonly<Record<string, unknown>>;
  readonly tag: string | null;
  readonly bytes: number;
  /** Milliseconds of the network's clock. */
  readonly at: number;
  readonly processedAt: number;
  readonly ends: 'processed' | 'failed' | 'rejected';
  readonly reason: string | null;
  /** When YouTube makes it public; null: at no time. */
  visibleAt: number | null;
  /** At its time YouTube cannot publish it. */
  readonly failsAt: number | null;
  /** `sha256` of the thumbnails that were set. */
  readonly thumbnails: string[];
}

export interface Comment {
  readonly id: string;
  readonly videoId: string;
  readonly text: string;
  readonly tag: string | null;
}

export interface CallEntry {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  /** Bytes that the call sent. */
  readonly sent: number;
  readonly range: string | null;
  readonly status: number;
}

/** What a call meets instead of the network's own answer. */
export interface Fault {
  /** `PUT last`, `PUT part`, `PUT probe`, else method and path. */
  readonly route: string;
  /** The call's address or body, or the words of the video that it is about, have this; absent: each call. */
  readonly says?: string;
  readonly channelId?: string;
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

/** What becomes of a video with these words. */
export interface Fate {
  readonly says: string;
  /** `locked`: the video is private, whatever was asked. */
  readonly then: 'processing' | 'rejected' | 'locked' | 'native_early' | 'native_never' | 'native_failed';
  readonly ms: number;
}

export interface YouTubeOptions {
  readonly redirectUri?: string;
  /** Milliseconds that a video is processed. Default 0: the answer to its last byte says that it is. */
  readonly processingMs?: number;
  /** Calls a day of California. */
  readonly quota?: { readonly inserts: number; readonly units: number };
  /** The consent screen is in testing: a refresh token works for seven days. */
  readonly isTesting?: boolean;
  /** Bytes of a part that a session keeps; it may be fewer than were sent. Default: all. */
  readonly keeps?: (sent: number) => number;
}

const dayMs = 86_400_000;
const pacific = new Intl.DateTimeFormat('en-CA', { timeZone: 'America/Los_Angeles', dateStyle: 'short' });

export class State {
  readonly app: { readonly clientId: string; readonly clientSecret: string; readonly redirectUri: string };
  readonly options: YouTubeOptions;
  readonly channels = new Map<string, Channel>();
  readonly access = new Map<string, Access>();
  readonly refresh = new Map<string, Access>();
  readonly codes = new Map<string, Access & { readonly challenge: string }>();
  readonly sessions = new Map<string, Session>();
  readonly videos: Video[] = [];
  readonly deleted = new Set<string>();
  readonly comments: Comment[] = [];
  readonly calls: CallEntry[] = [];
  readonly faults: (Fault & { left: number })[] = [];
  readonly fates: Fate[] = [];
  /** What calls and answers have against the discovery documents. */
  readonly unheld: string[] = [];
  /** By day of California. */
  readonly used = new Map<string, { inserts: number; units: number }>();
  #ahead = 0;
  #next = 0;

  constructor(options: YouTubeOptions) {
    const { redirectUri = 'https://postline.test/connect/callback' } = options;
    this.options = options;
    this.app = { clientId: '1-a.apps.googleusercontent.com', clientSecret: 'GOCSPX-secret', redirectUri };
  }

  now(): number {
    return Date.now() + this.#ahead;
  }

  advance(ms: number): void {
    this.#ahead += ms;
  }

  /** The day of California so many days ago. */
  day(daysAgo = 0): string {
    return pacific.format(this.now() - daysAgo * dayMs);
  }

  dayOf(at: number): string {
    return pacific.format(at);
  }

  id(length: number): string {
    this.#next += 1;
    return `${randomBytes(24).toString('base64url').replaceAll(/[-_]/g, 'x')}${this.#next.toString(36)}`.slice(-length);
  }

  token(kind: string): string {
    return `${kind}-${randomBytes(24).toString('base64url')}`;
  }

  grant(channelId: string, scopes: readonly string[]) {
    const accessToken = this.accessFor(channelId, scopes);
    const refreshToken = this.token('1//refresh');
    const until = this.options.isTesting === true ? this.now() + 7 * dayMs : null;
    this.refresh.set(refreshToken, { channelId, scopes, until });
    return { accessToken, refreshToken };
  }

  accessFor(channelId: string, scopes: readonly string[]): string {
    const accessToken = this.token('ya29');
    this.access.set(accessToken, { channelId, scopes, until: this.now() + 3_600_000 });
    return accessToken;
  }

  /** Ends all that a person has consented to. */
  revoke(person: string): void {
    const isOf = ({ channelId }: Access) => this.channels.get(channelId)?.person === person;
    for (const tokens of [this.access, this.refresh]) {
      for (const [token, access] of tokens) if (isOf(access)) tokens.delete(token);
    }
  }

  video(id: string): Video | null {
    return this.deleted.has(id) ? null : (this.videos.find((one) => one.id === id) ?? null);
  }

  fateOf(words: string): Fate | null {
    return this.fates.find(({ says }) => words.includes(says)) ?? null;
  }

  /** Counts a call. False: the project may make no more today. */
  takes(what: 'inserts' | 'units', amount: number): boolean {
    const { inserts = 100, units = 10_000 } = this.options.quota ?? {};
    const used = this.used.get(this.day()) ?? { inserts: 0, units: 0 };
    this.used.set(this.day(), used);
    used[what] += amount;
    return used[what] <= { inserts, units }[what];
  }

  /** The fault that this call meets; it is spent. */
  met(route: string, said: string, channelId: string | null): Fault['then'] | null {
    const fault = this.faults.find(
      (one) =>
        one.left > 0 &&
        one.route === route &&
        (one.says === undefined || said.includes(one.says)) &&
        (one.channelId === undefined || one.channelId === channelId),
    );
    if (fault === undefined) return null;
    fault.left -= 1;
    return fault.then;
  }
}
