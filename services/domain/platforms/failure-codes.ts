import { targetRules } from '#schemas/issues.ts';

/** Codes a target may fail with, and what each means: the api serves the sentences under /errors/{code}. */
export const failureCodes = {
  ...targetRules,
  text_empty: 'A reader would see nothing of the text, and the post has no file.',
  tiktok_privacy_level_required: 'TikTok requires the override privacyLevel.',
  youtube_title_required: 'YouTube requires a title of 1 to 100 characters without < and >.',
  youtube_description_invalid: 'YouTube refuses descriptions that contain < or >.',
  pinterest_board_required: 'Pinterest requires the override boardId.',
  reauth_required: 'The network no longer accepts the connection: connect the account again.',
  account_not_permitted:
    'The network does not let the account do this: its owner can change that there, and the post can then be retried.',
  network_rate_limited: 'The network limits the rate of calls; the publisher tries again at retryAt.',
  api_version_ended:
    'The network no longer answers the version of its API that this installation asks for. Nothing was published; the post goes out once an operator has set a newer version.',
  content_rejected: 'The network refused the content for good.',
  duplicate_content: 'The network reports that it already has this content.',
  comment_not_permitted:
    'The connection lacks the permission to comment: connect the account again and grant it. The post stays published.',
  cover_not_permitted:
    'The network does not let the account set the cover of a video: its owner can change that there. The post stays published.',
  visibility_reduced:
    'The network shows the post to fewer people than was asked, as the app or the account may be limited there. The post stays published.',
  network_down: 'The network did not answer before anything was published; the publisher tries again.',
  processing_timeout: 'The network is still processing the post; nothing is visible yet.',
  content_changed:
    'The text changed after a call that may already have published the earlier text: compose a new post.',
  outside_native_window: 'The network’s own scheduler takes no post for that time.',
  native_publish_failed: 'The network’s own scheduler had the post and could not publish it at its time.',
  undo_too_late: 'The network has published the scheduled post, or is about to, and no longer deletes it.',
  outcome_unknown: 'The network was called to publish, and the service does not know whether it published.',
} as const;

export type FailureCode = keyof typeof failureCodes;
