//! `/api/favorites`.

use assay_auth::Caller;
use assay_proto::catalog::{AddFavoriteRequest, FavoriteInput, RecordKind, RemoveFavoriteRequest};
use axum::extract::State;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    body::Body,
    path::Path,
    problem::Problem,
    services::{Favorites, Services},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(add_project))
        .routes(routes!(remove_project))
        .routes(routes!(add_test_case))
        .routes(routes!(remove_test_case))
        .routes(routes!(add_test_set))
        .routes(routes!(remove_test_set))
}

async fn add(
    State(mut favorites): State<Favorites>,
    caller: &Caller,
    kind: RecordKind,
    Body(favorite): Body<FavoriteInput>,
) -> Result<StatusCode, Problem> {
    let request = AddFavoriteRequest { kind: kind.into(), favorite: Some(favorite) };
    favorites.add_favorite(caller.call(request)).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn remove(
    State(mut favorites): State<Favorites>,
    caller: &Caller,
    kind: RecordKind,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let request = RemoveFavoriteRequest { kind: kind.into(), id };
    favorites.remove_favorite(caller.call(request)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Adds a project to the caller's favorites.
#[utoipa::path(
    post, path = "/api/favorites/project", operation_id = "add_favorite_project", tag = "Favorites",
    request_body = FavoriteInput,
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.FavoriteService/AddFavorite"))),
    responses((status = NO_CONTENT, description = "The project is a favorite")),
)]
async fn add_project(
    favorites: State<Favorites>,
    caller: Caller,
    favorite: Body<FavoriteInput>,
) -> Result<StatusCode, Problem> {
    add(favorites, &caller, RecordKind::Project, favorite).await
}

/// Removes a project from the caller's favorites.
#[utoipa::path(
    delete, path = "/api/favorites/project/{projectId}", operation_id = "remove_favorite_project",
    tag = "Favorites",
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.FavoriteService/RemoveFavorite"))),
    responses((status = NO_CONTENT, description = "The project is not a favorite")),
)]
async fn remove_project(
    favorites: State<Favorites>,
    caller: Caller,
    id: Path<String>,
) -> Result<StatusCode, Problem> {
    remove(favorites, &caller, RecordKind::Project, id).await
}

/// Adds a test case to the caller's favorites.
#[utoipa::path(
    post, path = "/api/favorites/testcase", operation_id = "add_favorite_test_case", tag = "Favorites",
    request_body = FavoriteInput,
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.FavoriteService/AddFavorite"))),
    responses((status = NO_CONTENT, description = "The test case is a favorite")),
)]
async fn add_test_case(
    favorites: State<Favorites>,
    caller: Caller,
    favorite: Body<FavoriteInput>,
) -> Result<StatusCode, Problem> {
    add(favorites, &caller, RecordKind::TestCase, favorite).await
}

/// Removes a test case from the caller's favorites.
#[utoipa::path(
    delete, path = "/api/favorites/testcase/{testCaseId}", operation_id = "remove_favorite_test_case",
    tag = "Favorites",
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.FavoriteService/RemoveFavorite"))),
    responses((status = NO_CONTENT, description = "The test case is not a favorite")),
)]
async fn remove_test_case(
    favorites: State<Favorites>,
    caller: Caller,
    id: Path<String>,
) -> Result<StatusCode, Problem> {
    remove(favorites, &caller, RecordKind::TestCase, id).await
}

/// Adds a test set to the caller's favorites.
#[utoipa::path(
    post, path = "/api/favorites/testset", operation_id = "add_favorite_test_set", tag = "Favorites",
    request_body = FavoriteInput,
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.FavoriteService/AddFavorite"))),
    responses((status = NO_CONTENT, description = "The test set is a favorite")),
)]
async fn add_test_set(
    favorites: State<Favorites>,
    caller: Caller,
    favorite: Body<FavoriteInput>,
) -> Result<StatusCode, Problem> {
    add(favorites, &caller, RecordKind::TestSet, favorite).await
}

/// Removes a test set from the caller's favorites.
#[utoipa::path(
    delete, path = "/api/favorites/testset/{testSetId}", operation_id = "remove_favorite_test_set",
    tag = "Favorites",
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.FavoriteService/RemoveFavorite"))),
    responses((status = NO_CONTENT, description = "The test set is not a favorite")),
)]
async fn remove_test_set(
    favorites: State<Favorites>,
    caller: Caller,
    id: Path<String>,
) -> Result<StatusCode, Problem> {
    remove(favorites, &caller, RecordKind::TestSet, id).await
}
