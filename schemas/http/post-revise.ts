import { Type } from 'typebox';
import { Uuid } from '#schemas/common.ts';
import { MediaAltTexts, maxContent } from '#schemas/post.ts';
import { byUuid, Named, OpenEnum, said, unreadIn } from '#schemas/published.ts';
import { type Cleaned, Maybe, Resettable, UuidInput } from './common.ts';
import { Post, unreadOfPost } from './post.ts';
import { ScheduleInput, ThreadInput, VariantInput } from './post-input.ts';

const revised = {
  content: Maybe(
    Type.String({
      maxLength: maxContent,
      description: 'Replaces the text, for every network without a text of its own.',
    }),
  ),
  mediaIds: Maybe(Type.Array(UuidInput, { maxItems: 20, description: 'Replaces the media, in order.' })),
  variants: Maybe(
    Type.Array(VariantInput, {
      maxItems: 10,
      description: 'Replaces all that differs on single networks: one entry for each.',
    }),
  ),
  schedule: Maybe(said(ScheduleInput, 'When the changed targets go out. Absent: each keeps its own time.')),
  thread: Resettable(said(ThreadInput, 'Replaces the chain of replies on x and threads; null: no thread.'), null),
  mediaAltTexts: Resettable(
    said(
      byUuid(MediaAltTexts),
      'Replaces the texts for people who do not see a picture, by id of its asset; ids not in the post are ignored. Null: none.',
    ),
    null,
  ),
  aiDisclosure: Maybe(Type.Boolean({ description: 'Whether the content was made with AI.' })),
  coverMediaId: Resettable(
    said(UuidInput, 'An image asset as the cover of a video; null: a frame of the video.'),
    null,
  ),
  coverFrameMs: Resettable(
    Type.Integer({
      minimum: 0,
      maximum: 86_400_000,
      description:
        'Milliseconds into the video at which tiktok and instagram take the cover; null: the network chooses.',
    }),
    null,
  ),
  timezone: Maybe(
    Type.String({
      minLength: 1,
      maxLength: 100,
      description:
        'Replaces the IANA zone for `schedule.scheduledLocal`, of targets whose account and client have none. A post with such a time is scheduled anew.',
      examples: ['Europe/Berlin'],
    }),
  ),
};

/** POST /posts/{id}/revise: only the members that are sent change. */
export const PostRevise = Named(
  'PostRevise',
  unreadIn(
    Type.Object(revised, {
      description:
        'Changes of a scheduled post, at least one: a member that is sent replaces that of the post as a whole, and one that is absent stays as it is. Null clears a thread, alt texts, a cover or its frame; for any other member it means absent. A post with a `pendingRevision` is changed from that, any other from its released content.',
    }),
    unreadOfPost(revised, 'a revise does not change it'),
  ),
);
/** As it comes from `clean`: every member may be absent. */
export type PostRevise = Partial<Cleaned<typeof PostRevise>>;

const skipReasons = [
  'publishing',
  'processing',
  'published',
  'canceled',
  'rate_limited',
  'outcome_unknown',
  'handed_to_platform',
  'failed',
  'awaiting_approval',
  'segment_published',
  'account_disconnected',
] as const;
const SkipReason = OpenEnum(
  'ReviseSkipReason',
  skipReasons,
  'publishing, processing, published, canceled, rate_limited, outcome_unknown, handed_to_platform, failed, awaiting_approval: the status of the target when the revise came to it; segment_published: a segment of its thread is out; account_disconnected: its account is disconnected.',
);

/** POST /posts/{id}/revise */
export const RevisedPost = Named(
  'RevisedPost',
  Type.Object(
    {
      ...Post.properties,
      revise: said(
        Named(
          'ReviseOutcome',
          Type.Object(
            {
              changed: Type.Array(Uuid, { description: 'Ids of the targets that go out as revised.' }),
              skipped: Type.Array(
                Named(
                  'ReviseSkip',
                  Type.Object(
                    {
                      targetId: said(Uuid, 'Id of the target.'),
                      reason: said(SkipReason, 'Why the revise does not reach it.'),
                    },
                    { description: 'A target that the revise does not reach.' },
                  ),
                ),
                { description: 'All other targets of the post: each keeps the content and the time that it had.' },
              ),
            },
            { description: 'What a revise did.' },
          ),
        ),
        'Which targets the revise changed.',
      ),
    },
    { description: 'A post after a revise, and what the revise did.' },
  ),
);
