//! Tests of the columns that messages are read from and written to.

use assay_proto::{
    InputColumns as _,
    catalog::{Environment, EnvironmentInput, SubjectInput, TestPlan, TestSet, TestSetInput},
    identity::{UserGroup, UserGroupInput},
};

#[test]
fn a_record_is_read_from_the_columns_of_its_fields() {
    assert_eq!(
        Environment::COLUMNS,
        "id, name, image_file_id, contained_subject, image_file_size, modification_allowed, \
         target_group, file_project_id, username, password, revision::text as data_version, \
         archived, project_id, labels, exclusive"
    );
}

#[test]
fn a_part_of_a_record_is_read_as_an_object() {
    assert_eq!(
        UserGroup::JSON,
        "jsonb_build_object('Id', id, 'Name', name, 'Description', description, \
         'UsagePermission', usage_permission, 'DataVersion', revision::text, \
         'Archived', archived)"
    );
}

#[test]
fn an_option_names_the_expression_of_a_column() {
    assert!(TestPlan::COLUMNS.contains("version::text as data_version"));
    assert!(!TestSet::COLUMNS.contains("test_cases"));
}

#[test]
fn an_input_is_written_to_the_columns_of_its_fields() {
    assert_eq!(UserGroupInput::COLUMNS, "name, description, usage_permission");
    assert_eq!(UserGroupInput::values(3), "$3, $4, $5");
    assert_eq!(
        UserGroupInput::assignments(3),
        "name = $3, description = $4, usage_permission = $5"
    );
}

#[test]
fn ids_are_cast_to_uuids() {
    assert!(EnvironmentInput::values(4).starts_with("$4, $5, $6::uuid, $7"));
    assert!(SubjectInput::assignments(1).contains("base_subject_id = $15::uuid"));
    assert!(TestSetInput::COLUMNS.ends_with("time_out, gate"));
}
