import { randomBytes } from 'node:crypto';
import type { Answer } from './answer.ts';

/** What the simulated Threads has: people, consents, containers, posts, calls. */

export interface Person {
  readonly id: string;
  readonly username: string;
  /** With a linked account of Instagram; without one nobody counts its followers. */
  readonly isLinked: boolean;
  readonly followers: number;
}

export interface Access {
  readonly personId: string;
  readonly scopes: readonly string[];
  readonly isLong: boolean;
  /** Milliseconds of the network's clock. */
  readonly from: number;
  readonly until: number;
}

/** A file as Threads fetched it from its address. */
export interface Fetched {
  readonly type: 'IMAGE' | 'VIDEO';
  readonly address: string;
  readonly bytes: number;
  readonly altText: string | null;
}

export interface Container {
  readonly id: string;
  readonly personId: string;
  readonly type: 'TEXT' | 'IMAGE' | 'VIDEO' | 'CAROUSEL';
  readonly params: Readonly<Record<string, string>>;
  readonly isChild: boolean;
  readonly children: readonly Container[];
  readonly at: number;
  file: Fetched | null;
  /** Looks that still show it in progress. */
  looks: number;
  status: 'IN_PROGRESS' | 'FINISHED' | 'PUBLISHED' | 'ERROR' | 'EXPIRED';
  error: string | null;
  /** Calls that still do not find it, whatever its status. */
  hidden: number;
}

export interface Post {
  readonly id: string;
  readonly personId: string;
  readonly code: string;
  readonly container: Container;
  readonly text: string;
  readonly parent: string | null;
  readonly root: string | null;
  readonly quoted: string | null;
  readonly replyControl: string;
  readonly files: readonly Fetched[];
  readonly at: number;
  /** Calls that still do not find it. */
  hidden: number;
}

/** A call that asked for a container to be published. */
export interface PublishEntry {
  readonly personId: string | null;
  /** Header `x-test-tag` of the call. */
  readonly tag: string | null;
  readonly containerId: string;
  readonly status: number;
  readonly postId: string | null;
}

export interface CallEntry {
  readonly method: string;
  readonly path: string;
  readonly params: Readonly<Record<string, string>>;
  readonly status: number;
}

/** What a call meets instead of the network's own answer. */
export interface Fault {
  /** `POST /:id/threads`. */
  readonly route: string;
  /** The call's address or body has this, or the text of the container that it names; absent: each call. */
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
    | { readonly run: () => void; readonly then: 'act' | 'silent_before' | 'silent_after' };
}

export interface ThreadsNetworkOptions {
  /** The Redirect Callback URL of the app. */
  readonly redirectUri?: string;
  readonly clientSecret?: string;
  /** Posts and replies in a moving day. */
  readonly quota?: { readonly posts: number; readonly replies: number };
}

/** Looks that show a container of this type in progress. */
export type Processing = Record<Container['type'], number>;

const dayMs = 86_400_000;

export class State {
  readonly app: { readonly clientId: string; readonly clientSecret: string; readonly redirectUri: string };
  readonly quota: { readonly posts: number; readonly replies: number };
  readonly processing: Processing = { TEXT: 0, IMAGE: 1, VIDEO: 2, CAROUSEL: 1 };
  /** What the next containers of a type end with instead of FINISHED. */
  readonly breaks: { type: Container['type']; error: string }[] = [];
  /** Calls that do not find a container although it is finished, or a post although it is out: of the next ones made. */
  hidesContainers: number[] = [];
  hidesPosts: number[] = [];
  /** A publish of a container that is out answers with its post; else Threads does not find it. */
  answersTwice = false;
  /** A published container has no status any more. */
  forgetsContainers = false;
  /** The first tag of a text is shown without its mark. */
  takesTags = false;
  /** Milliseconds by which the lists are behind. */
  listLagMs = 0;
  /** Posts on a page of a list, whatever it is asked for. */
  maxPage = Number.POSITIVE_INFINITY;
  readonly people = new Map<string, Person>();
  readonly access = new Map<string, Access>();
  readonly codes = new Map<
    string,
    { readonly personId: string; readonly scopes: readonly string[]; readonly until: number }
  >();
  readonly containers = new Map<string, Container>();
  readonly posts: Post[] = [];
  readonly deleted = new Set<string>();
  readonly publishes: PublishEntry[] = [];
  readonly calls: CallEntry[] = [];
  /** Addresses that Threads has fetched, in their order. */
  readonly fetched: string[] = [];
  readonly faults: (Fault & { left: number })[] = [];
  #ahead = 0;
  #next = 0n;

  constructor({
    redirectUri = 'https://postline.test/connect/callback',
    clientSecret = 'app-secret',
    quota,
  }: ThreadsNetworkOptions) {
    this.app = { clientId: '990602627938098', clientSecret, redirectUri };
    this.quota = quota ?? { posts: 250, replies: 1_000 };
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
    return String(17_900_000_000_000_000n + this.#next);
  }

  token(): string {
    return `THQV${randomBytes(24).toString('base64url')}`;
  }

  grant(personId: string, scopes: readonly string[], isLong: boolean): string {
    const token = this.token();
    const until = this.now() + (isLong ? 60 * dayMs : 3_600_000);
    this.access.set(token, { personId, scopes, isLong, from: this.now(), until });
    return token;
  }

  post(id: string): Post | null {
    return this.deleted.has(id) ? null : (this.posts.find((one) => one.id === id) ?? null);
  }

  /** Of the last 24 hours. */
  used(personId: string, isReply: boolean): number {
    const from = this.now() - dayMs;
    return this.posts.filter((one) => one.personId === personId && one.at > from && (one.parent !== null) === isReply)
      .length;
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
