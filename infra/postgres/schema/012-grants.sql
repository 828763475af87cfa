-- Accounts of one login at a network, where taking back what one has ends the others.

-- Whose consent it is, as the network names it; null: it is this account's alone.
alter table ops.network_credentials add grant_id text;
create index network_credentials_grants
  on ops.network_credentials (platform, grant_id) where grant_id is not null;

-- Destroys that version where another account is kept by the same consent. 'last': the network must be asked first. Two that
-- leave one consent at once take turns, or each would leave it to the other.
create function ops.leave_grant(r_account uuid, r_version integer) returns text language plpgsql as $body$
declare
  r_platform text;
  r_grant text;
begin
  select platform, grant_id into r_platform, r_grant
    from ops.network_credentials where account_id = r_account and version = r_version;
  if not found then
    return 'left';
  end if;
  if r_grant is null then
    return 'last';
  end if;
  perform pg_advisory_xact_lock(hashtextextended('grant ' || r_platform || ' ' || r_grant, 0));
  if not exists (select from ops.network_credentials
      where platform = r_platform and grant_id = r_grant and account_id <> r_account) then
    return 'last';
  end if;
  delete from ops.network_credentials where account_id = r_account and version = r_version;
  return 'left';
end
$body$;
