/**
 * Everything the house knows of one social network, as data: the gate, the publisher, the sandbox and the reports read
 * the same value. Every figure names in its file the page it was read from.
 */
import type { Platform } from '#schemas/common.ts';
import type { GateCode } from '#schemas/issues.ts';
import type { MediaKind, MediaUse } from '#schemas/media.ts';
import type { AppBudgetRule } from './app-budgets.ts';
import type { FailureCode } from './failure-codes.ts';
import type { InsightsTable } from './insights-table.ts';
import type { NetworkMedia } from './media-rules.ts';
import type { PriorTimes } from './prior-times.ts';

/** How a network counts. One text may be under several limits at once (Bluesky: graphemes and bytes). */
export type TextUnit =
  | 'weighted'
  | 'code_points'
  | 'utf16_units'
  | 'parsed_utf16_units'
  | 'graphemes'
  | 'utf8_bytes'
  | 'emoji_bytes'
  | 'links'
  | 'hashtags'
  | 'mentions';

export interface TextLimit {
  readonly unit: TextUnit;
  readonly limit: number;
}

export interface TextRules {
  /** The first one is what a composer shows; all must hold. */
  readonly limits: readonly [TextLimit, ...TextLimit[]];
  /** Override key whose string is sent instead of the content, where it is set. */
  readonly replacedBy?: string;
  /** The text without its markup, for the unit `parsed_utf16_units`. Default: the text as it is. */
  readonly shown?: (text: string, overrides: Overrides) => string;
  /** A limit that the network was seen to hold, though its documents do not name it: a warning says why. */
  readonly doubted?: TextLimit & { readonly why: string };
  /** A text that matches fails at publish. */
  readonly refused?: { readonly pattern: RegExp; readonly code: FailureCode; readonly message: string };
}

/** Texts for people who do not see a file, with files that the network shows so. */
export interface AltTextRule {
  readonly kinds: readonly MediaKind[];
  /** Absent: every use but a cover. */
  readonly uses?: readonly MediaUse[];
  /** Empty: no page names a limit, and what an asset or a post may have (2,000 characters) is the limit. */
  readonly limits: readonly TextLimit[];
}

export interface Capabilities {
  /** A connected reply chain from `thread.segments`. */
  readonly thread: boolean;
  readonly firstComment: boolean;
  /** The network's own scheduler takes posts. */
  readonly native: boolean;
  /** A post without media exists. */
  readonly textOnly: boolean;
  readonly altText: boolean;
  /** A separately uploaded cover. */
  readonly cover: boolean;
  /** The network has a field of its own for AI-made content. */
  readonly aiLabel: boolean;
}

/** Milliseconds ahead of now within which the network's own scheduler takes a post. */
export interface NativeWindow {
  readonly minMs: number;
  readonly maxMs: number;
  /** Override key → values with which the network's own scheduler takes no post. */
  readonly refuses: Readonly<Record<string, readonly string[]>>;
}

/** What the adapter holds before the boundary call and can ask about after it. */
export type PublishHandle = 'container' | 'upload' | 'record_key' | 'none';

export interface PublishRules {
  readonly handle: PublishHandle;
  /**
   * The handle makes at most one post however often the boundary is crossed with it, so "absent" after the settle
   * window proves that the earlier crossing made none.
   */
  readonly absenceIsProof: boolean;
  /**
   * `own_posts`: absence can be seen; `evidence`: the network shows only that a post is there, never that it is not;
   * `nothing`: it shows no post to us, and only a person can look.
   */
  readonly readsBack: 'own_posts' | 'evidence' | 'nothing';
  /** The network lists all of an account's own posts, whatever their audience. */
  readonly listsOwnPosts: boolean;
  /** Milliseconds after the call's deadline within which the post may still appear. */
  readonly settleWindowMs: number;
  /** What is otherwise for an account with this id on the network. Absent: the network reads all accounts alike. */
  readonly ofAccount?: (externalId: string) => Partial<ReadingRules>;
  /** `{id}`, `{code}`, `{username}`, `{account}` are filled in; the first template whose members are all known wins. */
  readonly permalinks: readonly string[];
}

/** What may be known of a post of an account once its call has no answer. */
export type ReadingRules = Pick<PublishRules, 'absenceIsProof' | 'readsBack' | 'listsOwnPosts' | 'settleWindowMs'>;

/** What a caller set for one network, by key, before it is checked. */
export type Overrides = Readonly<Record<string, unknown>>;

/** A target without a usable value fails at publish, never at the gate (spec 7.2). */
export interface RequiredOverride {
  readonly code: FailureCode;
  readonly message: string;
  /** True: the network gets something else where the key is not set, so the contract does not require it. */
  readonly fallback?: true;
  /** Whether the network gets a usable value. Default: the override is set and not empty. */
  readonly usable?: (content: string, overrides: Overrides) => boolean;
}

interface OverrideBase {
  /** What the key does, for the contract. */
  readonly about: string;
  /** Sent when the caller set nothing. */
  readonly default?: string | boolean;
  readonly required?: RequiredOverride;
  /** Of a thread only its first segment is sent with it. */
  readonly headOnly?: boolean;
  /** Sent only where the network shows the files as one of these, else ignored. Absent: always sent. */
  readonly uses?: readonly MediaUse[];
}

export type OverrideRule = OverrideBase &
  (
    | { readonly type: 'boolean' }
    /** `max` in code points. */
    | { readonly type: 'string'; readonly max?: number; readonly maxBytes?: number }
    | {
        readonly type: 'enum';
        readonly values: readonly string[];
        readonly aliases?: Readonly<Record<string, string>>;
        /**
         * How the scopes begin that name, one for each, the values which the account allows. An account without any
         * such scope is held to none.
         */
        readonly grantedBy?: string;
      }
    /** An absolute http(s) address. */
    | { readonly type: 'url'; readonly max?: number }
    /** Array of strings; `commas` accepts one comma-separated string too. `maxChars` counts as YouTube counts tags. */
    | {
        readonly type: 'list';
        readonly commas: boolean;
        readonly maxItems?: number;
        readonly maxChars?: number;
        /** Of one item without a leading @, in code points. */
        readonly maxItem?: number;
      }
    /** Usernames, or `{username, x?, y?}`, or one string of @usernames with commas. `maxName`: of one without its @. */
    | { readonly type: 'user_tags'; readonly maxItems: number; readonly maxName: number }
    /**
     * A comment, which has no markup: under the network's own text limits when `asPost`, and under `max` code points and
     * `maxHashtags`.
     */
    | { readonly type: 'comment'; readonly asPost: boolean; readonly max?: number; readonly maxHashtags?: number }
  );

/** Two known keys that the network refuses together. */
export interface BannedPair {
  readonly when: Readonly<Record<string, string | boolean>>;
  /** The key an error points at. */
  readonly path: string;
  readonly code: GateCode;
  readonly message: string;
}

/** What an operator's app at a network is set up by: each member gives a setting, `X_API`. */
export interface AppRules {
  /** By name; a live network answers at the defaults. */
  readonly addresses: Readonly<Partial<Record<AppAddress, string>>> & {
    readonly api: string;
    readonly authorize: string;
  };
  /** The version of the API that is asked for. Absent: no call names one. */
  readonly version?: string;
  /**
   * Permissions that owners are asked for, where a network gives them to apps one by one and refuses the whole question for one
   * that the app lacks. Absent: all of the adapter's.
   */
  readonly scopes?: readonly string[];
  /** What the app may read in a month, where the network bills reads. Absent: it bills none. */
  readonly monthlyReads?: number;
  /**
   * Each call, or each account that posts, takes from `appBudget`, and a setting says how much this app has. Absent: neither is
   * counted here.
   */
  readonly countsCalls?: true;
}

/**
 * Addresses that an adapter calls: of the API, of the page of consent, and where they are elsewhere of tokens, of whose login
 * it is, of uploads and of figures.
 */
export type AppAddress = 'api' | 'authorize' | 'tokens' | 'login' | 'uploads' | 'figures';

type AppMember = 'ClientId' | 'ClientSecret' | 'Version' | 'Scopes' | Capitalize<AppAddress>;

/** The settings of all apps: those of a network without one are absent. */
export type AppSettings = { readonly [K in `${Platform}${AppMember}`]?: string | null } & {
  readonly [K in `${Platform}MonthlyReads` | `${Platform}AppBudget` | `${Platform}AppUnits`]?: number;
};

/** A page of a network. */
export interface Terms {
  readonly name: string;
  readonly url: string;
}

export interface NetworkRules {
  readonly platform: Platform;
  /** As people write it. */
  readonly name: string;
  /** Absent: accounts are connected without an app of the operator, or by no adapter of ours. */
  readonly app?: AppRules;
  readonly text: TextRules;
  readonly media: NetworkMedia;
  /** The first that fits a file counts; where none does, no text for people who do not see it goes out with it. */
  readonly altTexts: readonly AltTextRule[];
  readonly capabilities: Capabilities;
  readonly nativeWindow: NativeWindow | null;
  readonly publish: PublishRules;
  /** What posts of an operator's whole app take from, where the network counts them by its calendar. Absent: it does not. */
  readonly appBudget?: AppBudgetRule;
  /** What its other calls take from, where the network counts those in units. Absent: they take from `appBudget`, or from nothing. */
  readonly appUnits?: AppBudgetRule;
  /** What an account may post in the last so many seconds, where the network says how much of it is used. Absent: it does not. */
  readonly postsInWindow?: { readonly limit: number; readonly seconds: number };
  readonly overrides: Readonly<Record<string, OverrideRule>>;
  /**
   * What the network tells of each account by a call: values of an override, or other ids of the account, and what they
   * are. Absent: nothing.
   */
  readonly choices?: Readonly<Record<string, string>>;
  /** The network is to be asked what the account may post where a post is shown to its author, and right before it goes out. */
  readonly asksFirst?: true;
  /**
   * What authors agree to by posting, which the network wants people to read where a post is shown to them before it goes out.
   * Absent: nothing.
   */
  readonly agreedTo?: (overrides: Overrides) => readonly Terms[];
  /** The network wants people to see the nickname of the account there, and not its username alone. */
  readonly showsNickname?: true;
  /** The title that the network gets beside the text; null: none that it takes. Absent: its posts have no title. */
  readonly title?: (content: string, overrides: Overrides) => string | null;
  readonly banned: readonly BannedPair[];
  /** The network's own key that repeats `aiGenerated`. */
  readonly aiKey: string | null;
  /** Where the network reports each figure. */
  readonly insights: InsightsTable;
  readonly priorTimes: PriorTimes;
}
