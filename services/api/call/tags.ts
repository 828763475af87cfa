/** The groups of operations in the contract; `noun` is the resource that `{id}` in their paths names. */
export const tags = {
  agency: { noun: 'agency', about: 'The workspace of the credential.' },
  clients: { noun: 'client', about: 'Brands and influencers, and the links that connect their accounts.' },
  accounts: { noun: 'account', about: 'Connected social accounts.' },
  posts: { noun: 'post', about: 'Posts, each composed once and sent to many accounts.' },
  'post-targets': { noun: 'post target', about: 'The destinations of a post: one target for each account.' },
  approvals: { noun: 'approval', about: 'Requests that ask a person whether a post may go out as it is.' },
  campaigns: { noun: 'campaign', about: 'Posts that are planned, and moved, together.' },
  media: { noun: 'media', about: 'The files of the content library, and their renditions for each network.' },
  analytics: {
    noun: 'post',
    about: 'Figures of posts and accounts as their networks report them, and the best times to post.',
  },
  reports: { noun: 'report', about: 'Saved reports, their runs and their exported files.' },
  webhooks: {
    noun: 'webhook',
    about: 'Endpoints that receive events, their signing secrets, deliveries and replays.',
  },
  console: {
    noun: 'API key',
    about:
      'What members do in the console: keys, the team, connected apps, sessions. These take the session of a member alone; keys and apps are refused with `first_party_only`.',
  },
  contract: { noun: 'error code', about: 'This contract, that of the events, and the catalogue of errors.' },
} as const;
export type Tag = keyof typeof tags;
