-- Networks of which one consent may be: a person of Facebook consents for pages and for accounts of Instagram at once, and a
-- revocation ends all of them.
create function ops.networks_of_consent(r_platform text) returns text[] language sql immutable as $body$
  select case when r_platform in ('facebook', 'instagram') then array['facebook', 'instagram'] else array[r_platform] end
$body$;

-- As before, over those networks.
create or replace function ops.leave_grant(r_account uuid, r_version integer) returns text language plpgsql as $body$
declare
  r_networks text[];
  r_grant text;
begin
  select ops.networks_of_consent(platform), grant_id into r_networks, r_grant
    from ops.network_credentials where account_id = r_account and version = r_version;
  if not found then
    return 'left';
  end if;
  if r_grant is null then
    return 'last';
  end if;
  perform pg_advisory_xact_lock(hashtextextended('grant ' || r_networks[1] || ' ' || r_grant, 0));
  if not exists (select from ops.network_credentials
      where platform = any(r_networks) and grant_id = r_grant and account_id <> r_account) then
    return 'last';
  end if;
  delete from ops.network_credentials where account_id = r_account and version = r_version;
  return 'left';
end
$body$;
