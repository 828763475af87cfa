import { type ShownKind, shownKinds } from '#schemas/approval.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import type { MediaKind } from '#schemas/media.ts';
import {
  checkOverride,
  effectiveOverrides,
  isSentAs,
  overrideRules,
  rulesOf,
  showsNothing,
  takesAltText,
  takesCover,
  takesCoverFrame,
  titleFor,
  useOf,
} from './platforms/index.ts';
import {
  type CoveredBody,
  type CoveredMember,
  contentFor,
  firstCommentOf,
  goesOutAsThread,
  mediaIdsOf,
  type PlatformContent,
} from './post/content.ts';

/**
 * Everything that the hash of an approval covers, as one list: every approver reads all of it, in each form. What
 * several networks get alike is one item that names them; what no network gets is an item too, which says why.
 */

export interface ShownItem {
  readonly kind: ShownKind;
  /** The networks that it is for, in the order of `platforms`. Empty: it was sent for all, and none gets it. */
  readonly platforms: readonly Platform[];
  /** Of a thread: the segment, from 1; null: it is of no segment. */
  readonly part: number | null;
  /** Of a file: its place, from 1. */
  readonly position: number | null;
  /** Of what was set for one network: the key. */
  readonly key: string | null;
  readonly value: string;
  /** Of the asset or the account. */
  readonly id: string | null;
  /** Null: it goes out on these networks. Else why it does not. */
  readonly unsent: string | null;
}

export interface ShownFileFacts {
  readonly name: string;
  readonly kind: MediaKind | null;
  readonly contentType: string | null;
  readonly bytes: number | null;
  /** Null: the bytes are not known. */
  readonly sha256: string | null;
  /** Where the post has no text of its own for the file. */
  readonly altText: string | null;
}

/** A post for whose content somebody decides. */
export interface Decided {
  readonly body: CoveredBody;
  /** What the decision is about. */
  readonly targets: readonly { readonly accountId: string; readonly platform: Platform }[];
  /** The other accounts of the post, which the hash covers too. */
  readonly others: readonly { readonly accountId: string; readonly platform: Platform }[];
  /** Null: the file is not there any more. */
  readonly fileOf: (mediaId: string) => ShownFileFacts | null;
  /** Name of the account on its network. */
  readonly nameOf: (accountId: string) => string;
}

/** One network of the decision, and what it gets. */
interface Net extends PlatformContent {
  readonly platform: Platform;
  readonly isThread: boolean;
  readonly variant: CoveredBody['variants'][number] | undefined;
  /** The text comes from a setting. */
  readonly isReplaced: boolean;
  readonly title: string | null;
  /** Of all segments. */
  readonly files: ReadonlySet<string>;
}

interface Seen extends Decided {
  readonly nets: readonly Net[];
}

const item = (kind: ShownKind, value: string, more: Partial<ShownItem>): ShownItem => ({
  ...{ kind, value, platforms: [], part: null, position: null, key: null, id: null, unsent: null },
  ...more,
});

const named = (nets: readonly Net[]): readonly Platform[] => nets.map(({ platform }) => platform);

/** Sent to these networks; to none of them: an item that says why. */
const sentTo = (made: ShownItem, nets: readonly Net[], otherwise: string): ShownItem =>
  nets.length > 0 ? { ...made, platforms: named(nets) } : { ...made, unsent: made.unsent ?? otherwise };

const nameOfFile = ({ fileOf }: Decided, id: string): string => fileOf(id)?.name ?? 'a file that was deleted';

const filesOf = (seen: Seen, ids: readonly string[], part: number | null): readonly ShownItem[] =>
  ids.map((id, at) => item('file', nameOfFile(seen, id), { id, part, position: at + 1 }));

const kindsOf = ({ fileOf }: Decided, ids: readonly string[]): readonly MediaKind[] =>
  ids.map((id) => fileOf(id)?.kind ?? 'image');

/** Keys of a variant: each known one that is sent as it is set, and each other one with the reason why it is not. */
const settingOf = (seen: Seen, net: Net, key: string, value: unknown): ShownItem => {
  const { platform, overrides } = net;
  const name = rulesOf(platform).name;
  const shown = item('setting', typeof value === 'string' ? value : (JSON.stringify(value) ?? ''), {
    ...{ platforms: [platform], key },
  });
  const rules = overrideRules(platform);
  const rule = Object.hasOwn(rules, key) ? rules[key] : undefined;
  if (rule === undefined) return { ...shown, unsent: `${name} has no such setting.` };
  if (value === null || value === undefined) return { ...shown, unsent: 'It is not set.' };
  const problem = checkOverride(platform, rule, value);
  if (problem !== null) return { ...shown, unsent: `It ${problem.message}.` };
  const [head] = net.segments;
  const use = head.mediaIds.length === 0 ? null : useOf(platform, overrides, kindsOf(seen, head.mediaIds));
  if (!isSentAs(rule, use)) return { ...shown, unsent: `${name} ignores it on a post of this form.` };
  if (rule.type === 'comment') {
    const isWanted = firstCommentOf(platform, overrides) !== null;
    return { ...shown, kind: 'first_comment', unsent: isWanted ? null : 'It is empty.' };
  }
  if (key === rulesOf(platform).text.replacedBy) return { ...shown, kind: 'text' };
  if (key !== 'title' || rulesOf(platform).title === undefined) return shown;
  return {
    ...shown,
    kind: 'title',
    unsent: net.title?.trim() === value.toString().trim() ? null : `${name} takes no such title.`,
  };
};

const variantOf = (seen: Seen, variant: CoveredBody['variants'][number]): readonly ShownItem[] => {
  const { platform, contentOverride, mediaIdsOverride, overrides } = variant;
  const net = seen.nets.find((one) => one.variant === variant);
  const rest = 'The decision is about no account on this network.';
  const of = { platforms: [platform] };
  const inThread = 'The thread stands in its place.';
  const replaced = `The setting ${rulesOf(platform).text.replacedBy} stands in its place.`;
  const texts = contentOverride === null ? [] : [item('text', contentOverride, of)];
  const none = item('file', 'no files', of);
  const files =
    mediaIdsOverride === null ? [] : mediaIdsOverride.length === 0 ? [none] : filesOf(seen, mediaIdsOverride, null);
  const because = (unsent: string | null) => (one: ShownItem) => ({ ...one, ...of, unsent });
  const ofNet = (key: string, value: unknown): ShownItem =>
    net === undefined
      ? item('setting', typeof value === 'string' ? value : (JSON.stringify(value) ?? ''), { ...of, key, unsent: rest })
      : settingOf(seen, net, key, value);
  const unsent = net === undefined ? rest : net.isThread ? inThread : null;
  return [
    ...texts.map(because(unsent ?? (net?.isReplaced === true ? replaced : null))),
    ...files.map(because(unsent)),
    ...Object.entries(overrides).map(([key, value]) => ofNet(key, value)),
  ];
};

/** The title that a network makes of the text, where none was set. */
const ownTitle = ({ title, overrides }: Net): boolean =>
  title !== null && !(typeof overrides.title === 'string' && !showsNothing(overrides.title));

const takesThisCover = (seen: Seen, { platform, segments, overrides }: Net): boolean =>
  segments.some(({ mediaIds }) => {
    const kinds = kindsOf(seen, mediaIds);
    return takesCover(platform, useOf(platform, overrides, kinds), kinds);
  });

const isVideo = (seen: Seen, { segments }: Net): boolean =>
  segments.some(({ mediaIds }) => kindsOf(seen, mediaIds).some((kind) => kind === 'video' || kind === 'gif'));

const altTextOf = ({ body, fileOf }: Seen, id: string): string | null =>
  body.mediaAltTexts?.[id] ?? fileOf(id)?.altText ?? null;

const takesTextOf = (seen: Seen, { platform, segments, overrides }: Net, id: string): boolean =>
  segments.some(({ mediaIds }) => {
    const kinds = kindsOf(seen, mediaIds);
    const kind = kinds[mediaIds.indexOf(id)];
    return kind !== undefined && takesAltText(platform, { use: useOf(platform, overrides, kinds), kind });
  });

const accountOf =
  (seen: Seen, unsent: string | null) =>
  ({ accountId, platform }: Decided['targets'][number]): ShownItem =>
    item('account', seen.nameOf(accountId), { platforms: [platform], id: accountId, unsent });

/** For each member of the hash what is shown of it: a new member does not compile until it has its line here. */
const shown: { readonly [M in CoveredMember]: (seen: Seen) => readonly ShownItem[] } = {
  accounts: (seen) => [
    ...seen.targets.map(accountOf(seen, null)),
    ...seen.others.map(accountOf(seen, 'The decision is not about it.')),
  ],
  content: ({ body, nets }) => {
    const { content } = body;
    const takers = nets.filter(
      (one) => !one.isThread && !one.isReplaced && (one.variant?.contentOverride ?? null) === null,
    );
    const text = sentTo(item('text', content, {}), takers, 'Each network has a text of its own.');
    const titles = nets
      .filter(ownTitle)
      .map(({ platform, title }) => item('title', title ?? '', { platforms: [platform] }));
    return [...(takers.length > 0 || content !== '' ? [text] : []), ...titles];
  },
  mediaIds: (seen) => {
    const takers = seen.nets.filter((one) => !one.isThread && (one.variant?.mediaIdsOverride ?? null) === null);
    const made = filesOf(seen, seen.body.mediaIds, null);
    return made.map((one) => sentTo(one, takers, 'Each network has files of its own.'));
  },
  variants: (seen) => seen.body.variants.flatMap((one) => variantOf(seen, one)),
  thread: (seen) => {
    const takers = seen.nets.filter(({ isThread }) => isThread);
    const parts = (seen.body.thread?.segments ?? []).flatMap(({ content, mediaIds }, at) => [
      item('text', content, { part: at + 1 }),
      ...filesOf(seen, mediaIds, at + 1),
    ]);
    return parts.map((one) => sentTo(one, takers, 'No network of this decision takes threads.'));
  },
  mediaAltTexts: (seen) => {
    const ids = new Set([...mediaIdsOf(seen.body), ...Object.keys(seen.body.mediaAltTexts ?? {})]);
    return [...ids].flatMap((id) => {
      const text = altTextOf(seen, id);
      if (text === null || text === '') return [];
      if (showsNothing(text)) return [item('alt_text', text, { id, unsent: 'It shows nothing.' })];
      const takers = seen.nets.filter((one) => takesTextOf(seen, one, id));
      return [sentTo(item('alt_text', text, { id }), takers, 'No network of this decision gets it.')];
    });
  },
  coverMediaId: (seen) => {
    const { coverMediaId: id } = seen.body;
    if (id === null) return [];
    const takers = seen.nets.filter((one) => takesThisCover(seen, one));
    return [sentTo(item('cover', nameOfFile(seen, id), { id }), takers, 'No network of this decision takes a cover.')];
  },
  coverFrameMs: (seen) => {
    const { coverFrameMs: ms } = seen.body;
    if (ms === null) return [];
    const takers = seen.nets.filter((one) => takesCoverFrame(one.platform) && isVideo(seen, one));
    return [sentTo(item('cover_frame', `${ms} ms`, {}), takers, 'No network of this decision takes a frame as cover.')];
  },
  aiDisclosure: ({ body, nets }) =>
    nets.map(({ platform, overrides }) => {
      const { aiGenerated } = effectiveOverrides(platform, overrides, body.aiDisclosure);
      return item('ai_label', aiGenerated === true ? 'yes' : 'no', { platforms: [platform] });
    }),
  files: (seen) =>
    mediaIdsOf(seen.body).map((id) => {
      const file = seen.fileOf(id);
      const facts = [file?.contentType, file?.bytes === null || file === null ? null : `${file.bytes} bytes`];
      const known = [...facts, file?.sha256 ? `SHA-256 ${file.sha256}` : 'its bytes are not known'];
      const isCover = id === seen.body.coverMediaId;
      const takers = seen.nets.filter((one) => one.files.has(id) || (isCover && takesThisCover(seen, one)));
      const made = item('bytes', known.filter(Boolean).join(', '), { id });
      return sentTo(made, takers, 'No network of this decision gets it.');
    }),
};

/** Equal items of several networks are one. */
const folded = (items: readonly ShownItem[]): readonly ShownItem[] => {
  const byKey = Map.groupBy(items, ({ platforms: _platforms, ...one }) => JSON.stringify(one));
  return [...byKey.values()].flatMap(([first, ...others]) => {
    if (first === undefined) return [];
    const all = new Set([first, ...others].flatMap((one) => one.platforms));
    return [{ ...first, platforms: platforms.filter((one) => all.has(one)) }];
  });
};

const netOf = (body: CoveredBody, platform: Platform): Net => {
  const content = contentFor(body, platform);
  const { replacedBy } = rulesOf(platform).text;
  return {
    ...content,
    platform,
    isThread: goesOutAsThread(body, platform),
    variant: body.variants.find((one) => one.platform === platform),
    isReplaced: replacedBy !== undefined && typeof content.overrides[replacedBy] === 'string',
    files: new Set(content.segments.flatMap(({ mediaIds }) => mediaIds)),
    title: titleFor(platform, content.segments[0].content, content.overrides),
  };
};

/** By kind, then as a network shows it: part by part, file by file. */
const inOrder = (a: ShownItem, b: ShownItem): number =>
  shownKinds.indexOf(a.kind) - shownKinds.indexOf(b.kind) ||
  (a.part ?? 0) - (b.part ?? 0) ||
  (a.position ?? 0) - (b.position ?? 0);

/** In the order of `shownKinds`: what goes out first, then what does not. */
export const shownContent = (decided: Decided): readonly ShownItem[] => {
  const named = new Set(decided.targets.map(({ platform }) => platform));
  const nets = platforms.filter((one) => named.has(one)).map((one) => netOf(decided.body, one));
  const seen: Seen = { ...decided, nets };
  const all = folded(Object.values(shown).flatMap((of) => of(seen)));
  const [sent, unsent] = [all.filter((one) => one.unsent === null), all.filter((one) => one.unsent !== null)];
  return [...sent.sort(inOrder), ...unsent.sort(inOrder)];
};
