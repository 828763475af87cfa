import { type Static, type TObject, Type } from 'typebox';
import { clockChangeAt, instantOf, isLocalDateTime, isTimezone } from '#domain/zones.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import { maxContent } from '#schemas/post.ts';
import { invalid } from '#services/api/call/refusal.ts';
import type { ToolCall } from '../call.ts';
import { Args, Id, Instant, Maybe, PlatformName, Platforms, Text } from '../words.ts';

/** What a post says, where it goes and when: the arguments of tools, and the body of the operations. */

const MediaIds = (description: string) => Type.Array(Id(), { maxItems: 20, description });

export const said = {
  mediaIds: Maybe(MediaIds('Ids of images or videos, in order: from import_media or media_status.')),
  variants: Maybe(
    Type.Array(
      Args({
        platform: PlatformName('The network.'),
        content: Maybe(Text(maxContent, 'The text on this network. Absent: the content of the post.')),
        mediaIds: Maybe(MediaIds('The media on this network. Absent: those of the post.')),
        settings: Maybe(
          Type.Record(Type.String({ maxLength: 100 }), Type.Unknown(), {
            description: 'Settings of the network, such as {"title": "…"} for youtube or {"firstComment": "…"}.',
          }),
        ),
      }),
      { maxItems: 10, description: 'What differs on single networks: one entry for each.' },
    ),
  ),
  thread: Maybe(
    Type.Array(Args({ content: Text(maxContent, 'The text of this part.'), mediaIds: Maybe(MediaIds('Its media.')) }), {
      minItems: 2,
      maxItems: 50,
      description: 'A chain of replies on x and threads, in place of content there. Other networks ignore it.',
    }),
  ),
  altTexts: Maybe(
    Type.Record(Type.String({ maxLength: 100 }), Text(2000, 'What the picture shows.'), {
      description: 'For people who do not see a picture: texts by id of the asset.',
    }),
  ),
  aiDisclosure: Maybe(Type.Boolean({ description: 'True: the content was made with AI and is labelled so.' })),
};

export const where = {
  accountIds: Maybe(
    Type.Array(Id(), {
      minItems: 1,
      maxItems: 100,
      description: 'Only these accounts of the client. Absent: all of its accounts, or those on `platforms`.',
    }),
  ),
  platforms: Maybe(Platforms('Only the accounts of the client on these networks.')),
  exceptPlatforms: Maybe(Platforms('All accounts of the client but those on these networks.')),
};

export const LocalTime = (description: string) =>
  Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d$', description });

export const when = {
  scheduledAt: Maybe(Instant('When it goes out, as an instant with Z or an offset.')),
  scheduledLocal: Maybe(
    LocalTime(
      'When it goes out, as wall-clock time `2026-01-31T09:00`: in `timezone`, else in the zone of each account, else of its client. Use this where the person says a time of day.',
    ),
  ),
  spreadMinutes: Maybe(
    Type.Integer({
      minimum: 0,
      maximum: 720,
      description: 'Spreads the accounts over so many minutes after the time.',
    }),
  ),
  timezone: Maybe(
    Text(100, 'IANA zone of scheduledLocal, as Europe/Berlin: send it where the person names a place or a zone.'),
  ),
};

type Members<P extends Parameters<typeof Type.Object>[0]> = Static<TObject<P>>;
export type SaidArgs = Partial<Members<typeof said>> & { readonly content?: string };
export type WhereArgs = Partial<Members<typeof where>>;
export type WhenArgs = Partial<Members<typeof when>>;

export const defined = <T extends object>(value: T): Partial<T> =>
  Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as Partial<T>;

/** Members of the body for those arguments that were given. */
export const contentOf = ({ content, mediaIds, variants, thread, altTexts, aiDisclosure }: SaidArgs) =>
  defined({
    content,
    mediaIds,
    variants: variants?.map(({ platform, content: contentOverride, mediaIds: mediaIdsOverride, settings }) =>
      defined({ platform, contentOverride, mediaIdsOverride, overrides: settings }),
    ),
    thread: thread === undefined ? undefined : { segments: thread },
    mediaAltTexts: altTexts,
    aiDisclosure,
  });

/** @throws Refusal 422 where the call says twice where it goes */
const oneWhere = ({ accountIds, platforms, exceptPlatforms }: WhereArgs): void => {
  if (accountIds !== undefined && (platforms ?? exceptPlatforms) !== undefined) {
    const path = platforms === undefined ? '/exceptPlatforms' : '/platforms';
    throw invalid(path, 'exclusive', 'must be left out where accountIds are named: they say where it goes');
  }
  if (platforms !== undefined && exceptPlatforms !== undefined) {
    throw invalid(
      '/exceptPlatforms',
      'exclusive',
      'must be left out where platforms are named: they leave out the rest',
    );
  }
};

const but = (all: readonly Platform[], except: readonly string[]): Platform[] =>
  all.filter((one) => !except.includes(one));

/** The networks of a group: those of the accounts that the client has now, and never one that the call leaves out. */
const platformsBut = async (call: ToolCall, clientId: string, except: readonly string[]): Promise<Platform[]> => {
  const body = { clientId, content: '', targets: { mode: 'group', clientId }, schedule: { type: 'now' } };
  interface Verdicts {
    readonly verdicts: readonly { readonly platform: Platform }[];
  }
  const { verdicts } = (await call.look<Verdicts>('previewPost', { body })).data;
  const connected = [...new Set(verdicts.map(({ platform }) => platform))];
  // The operation says what is wrong where the client has no account.
  if (connected.length === 0) return but(platforms, except);
  const left = but(connected, except);
  if (left.length === 0) {
    throw invalid('/exceptPlatforms', 'empty', 'leave no account: the client has none on another network');
  }
  return left;
};

/** Where a post goes, as the operations take it. @throws Refusal 422 */
export const targetsOf = async (call: ToolCall, clientId: string, args: WhereArgs) => {
  oneWhere(args);
  const { accountIds, exceptPlatforms } = args;
  if (accountIds !== undefined) return { mode: 'selection', clientId, accountIds };
  const wanted = exceptPlatforms === undefined ? args.platforms : await platformsBut(call, clientId, exceptPlatforms);
  return { mode: 'group', clientId, ...defined({ platforms: wanted }) };
};

/** The networks of a search. @throws Refusal 422 */
export const networksOf = (args: Pick<WhereArgs, 'platforms' | 'exceptPlatforms'>) => {
  oneWhere(args);
  const { exceptPlatforms } = args;
  return exceptPlatforms === undefined ? args.platforms : but(platforms, exceptPlatforms);
};

export const hasTime = ({ scheduledAt, scheduledLocal }: WhenArgs): boolean =>
  scheduledAt !== undefined || scheduledLocal !== undefined;

/**
 * The instant of a wall-clock time in the zone that the person named: the operations would read it in the zone of each
 * account. Undefined: no zone was named. @throws Refusal 422
 */
export const instantIn = ({ scheduledLocal, timezone }: Pick<WhenArgs, 'scheduledLocal' | 'timezone'>) => {
  if (scheduledLocal === undefined || timezone === undefined) return undefined;
  if (!isTimezone(timezone)) throw invalid('/timezone', 'unknown_timezone', 'must be a zone such as Europe/Berlin');
  if (!isLocalDateTime(scheduledLocal)) {
    throw invalid('/scheduledLocal', 'no_such_time', 'is not a time of the calendar');
  }
  return instantOf(scheduledLocal, timezone);
};

/** Null where the person named no zone. The operation gets the instant alone, and does not warn of the clocks. */
export const zoneWords = (args: Pick<WhenArgs, 'scheduledLocal' | 'timezone'>): string | null => {
  const instant = instantIn(args);
  if (instant === undefined) return null;
  const { scheduledLocal = '', timezone = '' } = args;
  return clockChangeAt(scheduledLocal, timezone)?.message ?? `${scheduledLocal} in ${timezone} is ${instant}.`;
};

/** Without a time: now. */
export const scheduleOf = ({ scheduledAt, scheduledLocal, spreadMinutes, timezone }: WhenArgs) => {
  if (scheduledAt !== undefined && scheduledLocal !== undefined) {
    throw invalid('/scheduledLocal', 'exclusive', 'must be left out where scheduledAt is given: only one time counts');
  }
  const instant = instantIn({ ...defined({ scheduledLocal, timezone }) });
  const time = instant === undefined ? defined({ scheduledAt, scheduledLocal }) : { scheduledAt: instant };
  return { type: hasTime({ ...time }) ? 'at' : 'now', ...time, ...defined({ spreadMinutes }) };
};

/** A zone without a wall-clock time: the operation says that it changes nothing. */
export const timezoneOf = ({ timezone, scheduledLocal }: WhenArgs) =>
  scheduledLocal === undefined ? defined({ timezone }) : {};

/** A time has to be meant: a call that says `schedule` without one would publish at once. */
export const requireTime = (args: WhenArgs): void => {
  if (!hasTime(args)) throw invalid('/scheduledAt', 'required', 'is missing: send scheduledAt or scheduledLocal');
};

/** The reverse: a time beside `publish_now` shows that one of the two is a mistake, and a post cannot be taken back. */
export const forbidTime = (args: WhenArgs): void => {
  if (hasTime(args)) throw invalid('/scheduledAt', 'exclusive', 'must be left out to publish at once');
};
