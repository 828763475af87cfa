import type { Platform } from './common.ts';
import { OpenEnum } from './published.ts';

/** What can be wrong with one member of an input: the entries of `errors` in a problem. */

/** The rules of a network that a target may break: also codes with which a target fails. */
export const targetRules = {
  text_too_long: 'The text is longer than the network allows.',
  alt_text_too_long: 'The text of the post for people who do not see a file is longer than the network allows.',
  too_many_media: 'The post has more media than the network takes in one post.',
  too_few_media: 'The post has fewer media than the network requires.',
  media_mixed: 'The network does not take these kinds of media in one post.',
  media_aspects_differ:
    'The network takes several images in one post only if all have the same ratio of width to height.',
  override_type: 'An override key of the network has a value of another type.',
  override_enum: 'An override key of the network has a value it does not know.',
  override_length: 'An override key of the network has a value that is too long.',
  override_not_granted: 'An override key has a value that the network knows and this account does not allow.',
  tiktok_branded_content_private: 'TikTok refuses branded content that only its author can see.',
} as const;

/** Why no rendition of a file suits a network: also codes with which a rendition fails. */
export const fileRules = {
  media_kind_not_taken: 'The network does not take this kind of media there.',
  media_too_long: 'The video is longer than the network allows.',
  media_too_short: 'The video is shorter than the network allows.',
  media_too_small: 'The picture has fewer pixels than the network requires.',
  media_too_heavy: 'The file cannot be made small enough for the network.',
  media_unreadable: 'The file is damaged: it could not be read as the type that it claims to be.',
} as const;
export type FileRule = keyof typeof fileRules;

/** Public: a code keeps its meaning. The list may grow. */
export const issueCodes = {
  required: 'The member is missing, or is null where it must have a value.',
  wrong_type: 'The value has another JSON type than the member takes.',
  not_allowed: 'The value is none of those that the member takes; `message` lists them.',
  wrong_format: 'The text does not have the form that the member takes; `message` gives an example.',
  too_short: 'The text has fewer characters than it must have.',
  too_long: 'The text has more characters than it may have.',
  too_few: 'The list has fewer entries than it must have.',
  too_many: 'The list has more entries than it may have.',
  too_small: 'The number is below the least that the member takes.',
  too_large: 'The number is above the largest that the member takes.',
  too_many_bytes: 'The input has more bytes than one resource may have as stored.',
  repeated: 'The value may be sent once and was sent again.',
  invalid_text: 'The text holds a NUL, or half of a surrogate pair.',
  empty: 'The post or the segment of a thread has neither text nor media.',
  exclusive: 'Of several members exactly one may be sent.',
  mismatch: 'The value must equal that of another member; `message` names it.',
  wrong_order: 'The end of a time range does not lie after its beginning.',
  no_such_time: 'The text has the form of a date or a time, but the calendar has no such date or time.',
  out_of_range: 'The date or the range of dates lies outside of what the operation covers.',
  unknown_parameter: 'The operation takes no query parameter of this name; `message` lists those it takes.',
  unknown_timezone: 'The IANA time zone database has no zone of this name.',
  unknown_id: 'The workspace has nothing with this id. An id of another workspace gets the same code.',
  unknown_event_type: 'There is no such event type, or the filter matches none.',
  banned_word: 'The text has a word that the rules of the client ban; `message` names it.',
  hashtag_missing: 'The text lacks a hashtag that the rules of the client require; `message` names it.',
  disclaimer_missing: 'The text lacks the disclaimer that the rules of the client require.',
  link_not_allowed: 'The text has a link that the link policy of the client does not allow; `message` names it.',
  schedule_in_past: 'The target would be due more than 60 seconds ago.',
  schedule_too_far: 'The target would be due more than 18 months ahead.',
  cadence_exceeded: 'The account would publish more often than its network or the workspace allows.',
  account_not_in_client: 'The account belongs to another client than the post.',
  account_disconnected: 'The account is disconnected.',
  media_not_in_client: 'The asset belongs to another client than a target that uses it.',
  media_not_publishable: 'The asset cannot be published, or not yet.',
  media_wrong_kind: 'The asset is of another kind than the member takes.',
  thread_not_supported: 'The network has no threads, and the target would have neither text nor media.',
  url_not_allowed: 'The service does not call this address: only https on port 443 of a public address.',
  ...targetRules,
  ...fileRules,
} as const;
export type IssueCode = keyof typeof issueCodes;
export type GateCode = keyof typeof targetRules | FileRule;

/** The schema of a code in an answer. */
export const IssueCode = OpenEnum(
  'IssueCode',
  Object.keys(issueCodes) as readonly IssueCode[],
  Object.entries(issueCodes)
    .map(([code, about]) => `\`${code}\`: ${about}`)
    .join(' '),
);

export interface Issue {
  /** JSON Pointer into the body; `/name` for a query parameter. */
  readonly path: string;
  readonly message: string;
  readonly code: IssueCode;
  /** The account of the target at fault, and its network. */
  readonly accountId?: string;
  readonly platform?: Platform;
  /** The file at fault. */
  readonly mediaId?: string;
}
