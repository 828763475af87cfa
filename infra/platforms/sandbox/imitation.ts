import type { Choice } from '#contracts/ports/platform-account.ts';
import type { InsightsSubject } from '#contracts/ports/platform-insights.ts';
import type { AccountFacts } from '#schemas/account.ts';
import type { Platform } from '#schemas/common.ts';
import type { Members } from '../shared/members.ts';
import type { Calls } from './calls.ts';
import type { Counting } from './curves.ts';

/** Refusals that do not depend on the content. */
export type NetworkRefusal = 'rate_limit' | 'token_death' | 'reject' | 'duplicate';

/** The facts about a post from which its figures are computed. */
export interface Shown {
  readonly platform: Platform;
  readonly post: InsightsSubject;
  readonly permalink: string | null;
  readonly ageMs: number;
}

/** Activity of an account on one day. */
export interface AccountDay {
  readonly followers: number;
  readonly of: Counting;
  /** Views of videos. */
  readonly plays: number;
  readonly watchedMs: number;
  /** Visits of the profile, and taps on its links. */
  readonly visits: number;
  readonly taps: number;
  readonly country: Readonly<Record<string, number>>;
  readonly city: Readonly<Record<string, number>>;
  /** By dimension, each in the form of Meta's answer to a call with that breakdown. */
  readonly follower_demographics: Members;
}

export interface PostIds {
  readonly id: string;
  /** Its short form in addresses. */
  readonly code: string;
}

/** How a network takes a comment on a post. */
export interface Comments {
  /** A reply is a post of its own that answers the post; a comment stands below it. */
  readonly form: 'reply' | 'comment';
  /** The network's code for a connection that may not comment; null: every connection may. */
  readonly forbidden: string | null;
  /** Id of a comment. Absent: a reply has the id of a post. */
  readonly id?: (random: Buffer, postId: string) => string;
}

/** The network's own scheduler. */
export interface Scheduler {
  /** The network's code for a time outside of its window, and for a scheduled post that can no longer be deleted. */
  readonly refusals: Readonly<Record<'outside_window' | 'too_late', string>>;
}

/** An account that is asked what it may choose. */
export interface Choosing {
  readonly username: string;
  readonly externalId: string;
}

/** The differences between the sandboxes of networks. */
export interface Imitation {
  /** The network's own code for each refusal. */
  readonly refusals: Readonly<Record<NetworkRefusal, string>>;
  /** Milliseconds in which a post gets two thirds of all its views. */
  readonly spreadMs: number;
  /** Id of an account. @param seed the same bytes for the same username @param username in lower case */
  readonly accountId: (seed: Buffer, username: string) => string;
  /** Scopes of an account beyond those that every sandbox account has. @param username in lower case */
  readonly scopes?: (username: string) => readonly string[];
  /** What an account may choose, for each key of `choices` in the rules of the network. Absent: it has none. */
  readonly choices?: Readonly<Record<string, (account: Choosing) => readonly Choice[]>>;
  /** What an account may post now. Absent: the network has no such question. @param username in lower case */
  readonly facts?: (username: string) => Pick<AccountFacts, 'allows' | 'maxDurationMs'>;
  /** Id of a new container, upload session or publish. Default: in Meta's form. */
  readonly handleId?: (random: Buffer) => string;
  /** `#` stands for the chat's next message number, which the database fills in. */
  readonly postIds: (made: {
    readonly random: Buffer;
    /** Ten random letters. */
    readonly code: string;
    /** The account's id on the network. */
    readonly account: string;
    readonly key: string;
    readonly nowMs: number;
  }) => PostIds;
  /** Null: the network takes no comment from its callers. */
  readonly comments: Comments | null;
  /** How it refuses a cover of an account that may set none, where the cover follows the post. Absent: it goes out with it, or not. */
  readonly covers?: { readonly forbidden: string };
  /** The network looks at some posts before it shows them. Absent: it shows at once what it takes. */
  readonly processes?: true;
  /** The network's code for a picture whose address is not the operator's by a file there. Absent: it wants no such proof. */
  readonly unproven?: string;
  /** How the network calls us. Absent: it does not. */
  readonly calls?: Calls;
  /** Absent: the network has no scheduler. */
  readonly scheduler?: Scheduler;
  /** Figures of a post in the network's own members; its `insights.ts` in the domain reads them. */
  readonly postInsights: (shown: Shown, of: Counting) => Members;
  /** Whether the network also reports days before yesterday, and whether it still revises their figures. */
  readonly pastDays: 'none' | 'final' | 'revised';
  /** Figures of an account for one day, in the network's own members. */
  readonly accountInsights: (day: AccountDay) => Members;
}
