import { Type } from 'typebox';
import { Instant, Nullable, Platform, Uuid } from '#schemas/common.ts';
import { MediaFailure, MediaKind, MediaUse } from '#schemas/media.ts';
import { Named, OpenEnum, said } from '#schemas/published.ts';
import { ScheduleMode } from '#schemas/target.ts';
import { AccountCadence } from './cadence.ts';
import { ProblemIssue, warningWords } from './common.ts';

/** POST /posts/preview: what publishing a body would do now. */

const PreviewProblem = Named(
  'PreviewProblem',
  Type.Object(
    {
      at: said(
        OpenEnum(
          'PreviewProblemAt',
          ['create', 'publish'],
          'create: POST /posts would refuse the body; publish: a draft of the body is accepted, and its publication refused.',
        ),
        'Which call would be refused.',
      ),
      code: Type.String({
        description: 'The code of the refusal. GET /errors/{code} explains it.',
        examples: ['validation_failed'],
      }),
      detail: Type.String({ description: 'The refusal in words for a person.' }),
      errors: Type.Array(ProblemIssue, {
        description: 'The members at fault, at most the first 20; empty where no single member is.',
      }),
    },
    { description: 'One reason for which the body would be refused.' },
  ),
);

/** The warnings of a preview; `meta.warnings` has those about members that nothing reads. */
const warningList = Object.entries(warningWords)
  .filter(([code]) => code !== 'stands_still' && code !== 'unknown_member')
  .map(([code, words]) => `\`${code}\`: ${words}`)
  .join('; ');

export const PreviewWarning = Named(
  'PreviewWarning',
  Type.Object(
    {
      code: Type.String({
        description: `Stable: branch on it. ${warningList}. With \`willFail\`, any other code: the \`failure.code\` that the target would have, which GET /errors/{code} explains.`,
        examples: ['tiktok_privacy_level_required'],
      }),
      path: Type.String({
        description: 'The member that the warning is about: a JSON Pointer into the body.',
        examples: ['/variants/0/overrides/privacyLevel'],
      }),
      message: Type.String({ description: 'The warning in words for a person.' }),
      willFail: Type.Boolean({
        description: 'Whether the target would fail when it is published, unless this changes before.',
      }),
      mediaId: said(Nullable(Uuid), 'The asset that it is about; null where it is about none.'),
      postId: said(Nullable(Uuid), 'With `duplicate_text`: a post with the same text; else null.'),
    },
    { description: 'Something that does not refuse the body and that its author should know.' },
  ),
);

const PreviewRendition = Named(
  'PreviewRendition',
  Type.Object(
    {
      contentType: Type.String({ description: 'Its media type.', examples: ['image/jpeg'] }),
      width: Type.Integer({ minimum: 1, description: 'Its width, pixels.' }),
      height: Type.Integer({ minimum: 1, description: 'Its height, pixels.' }),
      fit: said(
        OpenEnum(
          'RenditionFit',
          ['scale', 'pad'],
          'scale: the picture fills the frame; pad: the whole picture is fitted in and bars fill the rest.',
        ),
        'How the picture lies in its frame.',
      ),
    },
    { description: 'A file that is made of an asset for a network.' },
  ),
);

const PreviewMedia = Named(
  'PreviewMedia',
  Type.Object(
    {
      mediaId: said(Uuid, 'The asset.'),
      kind: said(MediaKind, 'Its kind.'),
      use: said(MediaUse, 'What the network would show it as.'),
      status: said(
        OpenEnum(
          'PreviewMediaStatus',
          ['ready', 'not_needed', 'preparing', 'not_requested', 'failed'],
          'ready: the rendition is there; not_needed: the file itself is published; preparing: the file is examined or its rendition is made; not_requested: the rendition is made once the post is scheduled; failed: there is none, and `failure` says why.',
        ),
        'How far the file for this network and use is.',
      ),
      failure: said(
        Nullable(MediaFailure),
        'Why there is no file that the network takes; null where nothing is wrong.',
      ),
      rendition: said(
        Nullable(PreviewRendition),
        'The file that is made for this network and use; null: the file itself is published, or there is none, or the file is not examined yet.',
      ),
    },
    { description: 'A file that a target would publish.' },
  ),
);

const TextLength = Named(
  'TextLength',
  Type.Object(
    {
      used: Type.Integer({
        minimum: 0,
        description: 'How long the text is, as the network counts; exact up to four times the limit.',
      }),
      limit: Type.Integer({ minimum: 1, description: 'How long it may be.' }),
    },
    { description: 'A text against the tightest limit of its network, in the units of the network.' },
  ),
);

const PreviewTerms = Named(
  'PreviewTerms',
  Type.Object(
    {
      name: Type.String({ description: 'Its name, as the network writes it.', examples: ['Music Usage Confirmation'] }),
      url: Type.String({
        description: 'Its page.',
        examples: ['https://www.tiktok.com/legal/page/global/music-usage-confirmation/en'],
      }),
    },
    { description: 'A page of a network to which authors agree by posting.' },
  ),
);

const PreviewVerdict = Named(
  'PreviewVerdict',
  Type.Object(
    {
      platform: said(Platform, 'The network.'),
      accountId: said(
        Nullable(Uuid),
        'The account of the target; null for a network of `targets.platforms` on which the client has no account.',
      ),
      ok: Type.Boolean({ description: 'Whether nothing of this target refuses the post: `errors` is empty.' }),
      errors: Type.Array(ProblemIssue, {
        description: 'Every rule that this target breaks, at most the first 20.',
      }),
      warnings: Type.Array(PreviewWarning, {
        description: 'What the author should know of this target, at most the first 20; those with `willFail` first.',
      }),
      text: Type.String({
        description: 'The text that the network would get; of a thread, that of its first segment.',
      }),
      title: said(
        Nullable(Type.String()),
        'The title that the network would get; null where it has none, or none that it would take.',
      ),
      length: said(TextLength, 'How long `text` is.'),
      terms: Type.Array(PreviewTerms, {
        description:
          'What authors agree to by posting with these settings, where the network wants people to read it before they post: “By posting, you agree to TikTok’s Branded Content Policy and Music Usage Confirmation”. Empty: nothing.',
      }),
      media: Type.Array(PreviewMedia, {
        description: 'The files that would be published with `text`, in order, and the cover of a video after them.',
      }),
      scheduledAt: said(Nullable(Instant), 'When the target would be due, before any jitter; null without an account.'),
      latestAt: said(
        Nullable(Instant),
        'When it would be due at the latest, by `schedule.spreadMinutes`; null without an account.',
      ),
      scheduleMode: said(ScheduleMode, 'The mode that it would have.'),
      scheduleModeReason: said(
        Nullable(Type.String()),
        'Why it would not have the requested mode; null where it would.',
      ),
    },
    { description: 'What publishing would do on one account.' },
  ),
);

const PreviewQuota = Named(
  'PreviewQuota',
  Type.Object(
    {
      limit: said(
        Nullable(Type.Integer({ minimum: 0 })),
        'Targets that the workspace may publish in one month; null: no limit.',
      ),
      remaining: said(
        Nullable(Type.Integer({ minimum: 0 })),
        'Targets that are left of it; null: no limit. Where the targets are due in several months, of the one with the least room.',
      ),
      needed: Type.Integer({ minimum: 0, description: 'Targets that this post would take; a thread counts as one.' }),
    },
    { description: 'The quota of the workspace for the post.' },
  ),
);

export const PostPreview = Named(
  'PostPreview',
  Type.Object(
    {
      object: Type.Literal('post_preview', { description: 'The kind of resource.' }),
      valid: Type.Boolean({ description: 'Whether POST /posts would accept this body now.' }),
      problems: Type.Array(PreviewProblem, {
        description:
          'Every reason for which the body would be refused, in the order of the checks: the refusal of the call would be the first. Empty: it would be accepted, and could be published.',
      }),
      approvalRequired: Type.Boolean({
        description: 'Whether its targets would be held until a person has approved the post.',
      }),
      warnings: Type.Array(PreviewWarning, { description: 'What the author should know of the body as a whole.' }),
      verdicts: Type.Array(PreviewVerdict, {
        description: 'One for each account that the body selects and that is known, at most 500.',
      }),
      quota: said(PreviewQuota, 'The quota of the workspace.'),
      cadence: said(
        Nullable(Type.Array(AccountCadence)),
        'How often each account of the post may publish, where anything limits it; null: nothing is known to limit any.',
      ),
    },
    { description: 'What publishing a body would do now.' },
  ),
);
