/** Codes a target may fail with, and what each asks of whom: the words are served under /errors/{code}. */
export const failureCodes = {
  text_too_long: 'The text is over the limit of the network it was to go to.',
  too_many_media: 'The post has more media than any shape of post of that network takes.',
  too_few_media: 'The network takes no such post without media, or only with more.',
  media_mixed: 'The network does not take these kinds of media in one post.',
  media_aspects_differ: 'The network takes several images in one post only of one ratio of width to height.',
  override_type: 'An override key of the network has a value of another type.',
  override_enum: 'An override key of the network has a value it does not know.',
  override_length: 'An override key of the network has a value that is too long.',
  tiktok_privacy_level_required: 'TikTok publishes nothing without the override privacyLevel.',
  tiktok_branded_content_private: 'TikTok takes no branded content that only its author may see.',
  youtube_title_required: 'YouTube needs a title of 1 to 100 characters without < and >.',
  youtube_description_invalid: 'YouTube takes no < or > in a description.',
  pinterest_board_required: 'Pinterest needs the override boardId.',
  reauth_required: 'The network no longer accepts the connection: the account must be connected anew.',
  network_rate_limited: 'The network asks to wait; the target goes out again at retryAt.',
  content_rejected: 'The network refused the content for good.',
  duplicate_content: 'The network says that it has this content already.',
  network_down: 'The network could not be reached; nothing was sent.',
  processing_timeout: 'The network is still preparing the post; nothing was made visible yet.',
  content_changed: 'The text changed after a call whose earlier text may still be bound to it: compose a new post.',
  outcome_unknown: 'The network was asked to publish and did not say whether it did.',
} as const;

export type FailureCode = keyof typeof failureCodes;
